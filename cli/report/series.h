// SPDX-License-Identifier: Apache-2.0
//
// The series of a run's timeline, as numbers of equal length, and what they are of.
//
// Thread safety: pure functions and a value. Ownership: borrows the document, of the schema
// cairn-run-1. Units: as docs/reference.md has them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cairn::cli {

class Series {
 public:
  explicit Series(const nlohmann::json& run);
  const std::vector<double>& seconds() const { return seconds_; }
  bool has(const std::string& name) const { return series_.is_object() && series_.contains(name); }
  // What the record has none of is 0.
  std::vector<double> of(const std::string& name) const;
  // What a sum grew by in each second.
  std::vector<double> rate(const std::string& name) const;
  double last(const std::string& name) const;

 private:
  const nlohmann::json& series_;
  std::vector<double> seconds_;
};

std::vector<std::string> tier_names(const nlohmann::json& run);
// Those that fetched something ahead.
std::vector<std::string> predictors_of(const nlohmann::json& run);

}  // namespace cairn::cli
