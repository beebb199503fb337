// SPDX-License-Identifier: Apache-2.0
#include "cli/run/array_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/node/json_fields.h"
#include "cli/terminal/output.h"
#include "cli/terminal/paths.h"

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

namespace {

constexpr size_t kServedLinesMax = 6;
constexpr size_t kNamesMax = 3;
constexpr const char* kIndent = "            ";

std::string place_of(const nlohmann::json& dataset) {
  return printable(base_name(text_field(dataset, "file"))) + ":" + dataset_name(dataset);
}

struct Group {
  uint64_t datasets = 0;
  std::string names;
};

std::string group_line(const std::string& reason, const Group& group, uint64_t all) {
  const uint64_t named = std::min<uint64_t>(group.datasets, kNamesMax);
  std::string line = fmt::format("{}left to HDF5, {}: {}", kIndent, printable(reason), group.names);
  if (all > named) line += fmt::format("{}{} more", named == 0 ? "" : " and ", all - named);
  return line;
}

}  // namespace

std::vector<std::string> array_lines(const nlohmann::json& arrays) {
  std::vector<std::string> lines;
  std::map<std::string, Group> groups;
  for (const nlohmann::json& dataset : member(arrays, "datasets")) {
    const std::string reason = text_field(dataset, "not_served");
    if (reason.empty()) {
      lines.push_back(fmt::format("{}{}: {}", kIndent, place_of(dataset), reads_text(dataset)));
      continue;
    }
    Group& group = groups[reason];
    if (group.datasets++ < kNamesMax)
      group.names += (group.names.empty() ? "" : ", ") + place_of(dataset);
  }
  const uint64_t served = unsigned_field(arrays, "may_be_served");
  if (lines.size() > kServedLinesMax) lines.resize(kServedLinesMax);
  if (served > lines.size())
    lines.push_back(fmt::format("{}and {} more datasets", kIndent, served - lines.size()));
  for (const auto& [reason, count] : member(arrays, "not_served").items()) {
    const uint64_t all = count.is_number_unsigned() ? count.get<uint64_t>() : 0;
    lines.push_back(group_line(reason, groups[reason], all));
  }
  return lines;
}

}  // namespace cairn::cli
