// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rescued_files.h"

#include <fmt/format.h>

#include <cstdint>

#include "base/check.h"
#include "cli/terminal/failure.h"
#include "cli/terminal/output.h"

namespace cairn::cli {
namespace {

// A call that was cut off at its word that it begins had written nothing.
bool is_cut_off(std::string_view line) { return line.starts_with('b'); }

// A name in the directory, and not the list's own.
bool is_saved_name(const std::string& saved) {
  return saved.find('/') == std::string::npos && saved != kRescueListName;
}

bool is_inside_file(const RescueEntry& entry) {
  constexpr uint64_t kFileBytesMax = INT64_MAX;
  return entry.offset <= kFileBytesMax && entry.length <= kFileBytesMax - entry.offset;
}

// Returns: whether the line is one.
bool add_line(std::string_view line, RescuedFiles* found) {
  if (const auto begun = parse_begun_line(line)) {
    const auto file = found->saved.find(*begun);
    if (file != found->saved.end()) file->second.is_begun = true;
    return file != found->saved.end();
  }
  const auto entry = parse_rescue_line(line);
  if (!entry || !is_saved_name(entry->saved)) return false;
  if (entry->saved.empty()) {
    LostFile& lost = found->lost[name_of(*entry)];
    lost.why = entry->why;
    lost.bytes += entry->length;
    return true;
  }
  if (!is_inside_file(*entry)) return false;
  RescuedFile& file = found->saved[entry->saved];
  file.about = *entry;
  file.ranges.push_back(*entry);
  file.bytes += entry->length;
  return true;
}

}  // namespace

std::string name_of(const RescueEntry& about) {
  return about.path.empty() ? fmt::format("inode {}", about.inode) : printable(about.path);
}

timespec time_of(int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  int64_t seconds = nanoseconds / kSecond;
  int64_t rest = nanoseconds % kSecond;
  if (rest < 0) {
    --seconds;
    rest += kSecond;
  }
  return {seconds, rest};
}

RescuedFiles parse_rescue_list(const std::string& name, std::string_view text) {
  const std::string head = rescue_list_head();
  if (!text.starts_with(head))
    throw Failure(fmt::format("{} is no list of this version of Cairn", printable(name)));
  RescuedFiles found;
  found.whole_bytes = head.size();
  while (found.whole_bytes < text.size()) {
    const std::string_view rest = text.substr(found.whole_bytes);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const bool has_end = line.size() < rest.size();
    if (!has_end && is_cut_off(line)) break;
    if (!add_line(line, &found))
      throw Failure(fmt::format("{}: a line that is none: {}", printable(name),
                                printable(std::string(line))));
    found.whole_bytes += line.size() + (has_end ? 1 : 0);
  }
  CAIRN_CHECK(found.whole_bytes <= text.size());
  return found;
}

}  // namespace cairn::cli
