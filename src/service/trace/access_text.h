// SPDX-License-Identifier: Apache-2.0
// An access as other tools write it down, with numbers in decimal text, and the events it becomes.
//
// Thread safety: pure functions, values.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "service/trace/trace_event.h"

namespace cairn {

// Linux moves no more with one call (read(2)), so that a longer access was several of them.
inline constexpr std::uint64_t kTransferBytesMax = 0x7ffff000;

struct TextAccess {
  std::uint64_t time_ns = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t file = 0;
  std::uint32_t process = 0;
  bool is_write = false;

  // Whether its last byte is below 2^63, where a file may have one.
  // Nobody reads more than a tebibyte with one call, and each of its pages is a reference later.
  static constexpr std::uint64_t kLengthMax = std::uint64_t{1} << 40;
  bool is_possible() const { return offset <= INT64_MAX - kLengthMax && length <= kLengthMax; }
  // Takes the next part off, of kTransferBytesMax at most. An access without any is one event too:
  // take while the length is not zero afterwards.
  TraceEvent take_part();
};

// Returns: nothing unless the whole text is a number of that kind.
std::optional<std::uint64_t> parse_whole(std::string_view text);
std::optional<std::int64_t> parse_signed(std::string_view text);
// Seconds with a fraction. Returns: nanoseconds; nothing below zero or beyond 2^63.
std::optional<std::uint64_t> parse_seconds(std::string_view text);

}  // namespace cairn
