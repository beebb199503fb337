// SPDX-License-Identifier: Apache-2.0
// The list of a rescue directory as `cairn rescue` reads it: any text behind the first line, and
// lines of any values. An entry that is read can be written again, and is the same; what is to be
// written lies inside of a file, under a name in the directory.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "cli/commands/rescued_files.h"
#include "cli/terminal/failure.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace cairn;

bool is_same(const RescueEntry& left, const RescueEntry& right) {
  return left.path == right.path && left.device == right.device && left.inode == right.inode &&
         left.size == right.size && left.mtime_ns == right.mtime_ns &&
         left.stored_ns == right.stored_ns && left.offset == right.offset &&
         left.length == right.length && left.saved == right.saved && left.why == right.why;
}

void check_entry(const RescueEntry& entry) {
  std::string line = rescue_line(entry);
  CAIRN_CHECK(line.find('\n') == line.size() - 1);
  line.pop_back();
  const auto again = parse_rescue_line(line);
  CAIRN_CHECK(again.has_value());
  CAIRN_CHECK(is_same(*again, entry));
  CAIRN_CHECK(!parse_begun_line(line));
  line = begun_line(entry);
  line.pop_back();
  CAIRN_CHECK(parse_begun_line(line) == entry.saved);
}

void check_time(std::int64_t nanoseconds) {
  const timespec time = cli::time_of(nanoseconds);
  CAIRN_CHECK(time.tv_nsec >= 0 && time.tv_nsec < 1'000'000'000);
}

void read(const std::string& text) {
  cli::RescuedFiles found;
  try {
    found = cli::parse_rescue_list("list", text);
  } catch (const cli::Failure&) {
    return;
  }
  CAIRN_CHECK(found.whole_bytes <= text.size());
  for (const auto& [name, file] : found.saved) {
    CAIRN_CHECK(!name.empty() && name.find('/') == std::string::npos && name != kRescueListName);
    CAIRN_CHECK(!file.ranges.empty());
    for (const RescueEntry& range : file.ranges) {
      CAIRN_CHECK(range.saved == name);
      CAIRN_CHECK(range.length <= std::uint64_t{INT64_MAX} - range.offset);
      check_entry(range);
      check_time(range.mtime_ns);
      check_time(range.stored_ns);
    }
  }
  for (const auto& [name, file] : found.lost) CAIRN_CHECK(!name.empty());
}

RescueEntry entry_of(fuzz::FuzzInput& input) {
  RescueEntry entry;
  entry.offset = input.take<std::uint32_t>();
  entry.length = input.take<std::uint32_t>();
  entry.size = input.take<std::uint64_t>();
  entry.mtime_ns = input.take<std::int64_t>();
  entry.stored_ns = input.take<std::int64_t>();
  entry.inode = input.take<std::uint16_t>();
  entry.saved = input.take_bytes(input.take<std::uint8_t>() % 4);
  entry.path = input.take_bytes(input.take<std::uint8_t>() % 32);
  entry.why = input.take_bytes(input.take<std::uint8_t>() % 32);
  return entry;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::FuzzInput input(data, size);
  read(std::string(input.rest()));
  read(rescue_list_head() + std::string(input.rest()));
  std::string text = rescue_list_head();
  while (!input.is_at_end()) {
    const bool is_begun = input.take<std::uint8_t>() % 4 == 0;
    const RescueEntry entry = entry_of(input);
    check_entry(entry);
    text += rescue_line(entry);
    if (is_begun) text += begun_line(entry);
  }
  read(text);
  return 0;
}
