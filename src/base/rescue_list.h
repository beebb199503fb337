// SPDX-License-Identifier: Apache-2.0
// The list in a rescue directory: which bytes of which file are saved where, and why they are not
// in their place. Text, one line for each range, and one for each file that `cairn rescue` has
// begun to write; docs/formats.md has the columns.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

inline constexpr const char* kRescueListName = "list";

struct RescueEntry {
  std::string path;  // of the file; empty when nobody knows
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;      // of the whole file, as the programs saw it
  std::int64_t mtime_ns = 0;   // the same
  std::int64_t stored_ns = 0;  // the time that the file bore in the store after the rescue
  std::uint64_t offset = 0;    // of the range, in the file and in what is saved of it
  std::uint64_t length = 0;
  std::string saved;  // the file in the rescue directory; empty: the range is lost
  std::string why;
};

// The first line, with the version.
std::string rescue_list_head();
std::string rescue_line(const RescueEntry& entry);
// None when it is no such line.
std::optional<RescueEntry> parse_rescue_line(std::string_view line);

// From here on the file in the store may be half written, and have another time.
std::string begun_line(const RescueEntry& entry);
// What the file is saved in; none when it is no such line.
std::optional<std::string> parse_begun_line(std::string_view line);

}  // namespace cairn
