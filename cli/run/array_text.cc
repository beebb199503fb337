// SPDX-License-Identifier: Apache-2.0
#include "cli/run/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "cli/node/json_fields.h"
#include "cli/terminal/output.h"

namespace cairn::cli {

std::string dataset_name(const nlohmann::json& dataset) {
  const std::string name = text_field(dataset, "name");
  return name.empty() ? "(a dataset without a path)" : printable(name);
}

std::string reads_text(const nlohmann::json& dataset) {
  const uint64_t served = unsigned_field(dataset, "served_reads");
  const uint64_t left = unsigned_field(dataset, "left_reads");
  const double part =
      served == 0 ? 0 : 100.0 * static_cast<double>(served) / static_cast<double>(served + left);
  std::string text = fmt::format("{} from chunks ({:.0f} %)", served, part);
  if (left == 0) return text;
  std::vector<std::pair<uint64_t, std::string>> reasons;
  for (const auto& [reason, reads] : member(dataset, "left").items())
    reasons.emplace_back(reads.is_number_unsigned() ? reads.get<uint64_t>() : 0, reason);
  std::sort(reasons.rbegin(), reasons.rend());
  text += fmt::format(", {} left to HDF5", left);
  const char* separator = ": ";
  for (const auto& [reads, reason] : reasons) {
    text += fmt::format("{}{} {}", separator, reads, printable(reason));
    separator = ", ";
  }
  return text;
}

}  // namespace cairn::cli
