// SPDX-License-Identifier: Apache-2.0
//
// Rates of a node: differences of counters between two of its status documents.
//
// Thread safety: one thread. Ownership: owns its numbers. Units: bytes per second, by the clock of
// the service. Errors: a document without counters counts as one where nothing has happened.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

namespace cairn::cli {

enum class Rate : unsigned { kRead, kWrite, kFlush, kFetch };
inline constexpr unsigned kRates = 4;

// The counters whose differences are the rates.
struct RateCounters {
  std::array<std::uint64_t, kRates> bytes{};
  double uptime_seconds = 0;
  std::uint64_t service = 0;  // its process
};
RateCounters rate_counters(const nlohmann::json& status);

class RateHistory {
 public:
  static constexpr std::size_t kKept = 240;

  void add(const RateCounters& now);
  // Nobody answered: the next document has nothing to be compared with.
  void note_gap() { last_.reset(); }

  // The rates of the last intervals, oldest first.
  const std::deque<double>& of(Rate rate) const { return rates_[static_cast<unsigned>(rate)]; }
  // 0 before the second document.
  double last(Rate rate) const { return of(rate).empty() ? 0 : of(rate).back(); }

 private:
  std::optional<RateCounters> last_;
  std::array<std::deque<double>, kRates> rates_;
};

}  // namespace cairn::cli
