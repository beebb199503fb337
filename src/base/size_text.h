// SPDX-License-Identifier: Apache-2.0
//
// Sizes and durations as people write and read them: "64M", "1.5 GiB", "500 ms", "2.3 s".
//
// All suffixes are binary (K = 1024), with or without "B" or "iB", in either case: a tier's
// capacity is made of pages, so a decimal gigabyte would only round badly.
//
// Thread safety: pure functions. Ownership: results are values.
//
//   parse_size("64M")          == 67108864
//   format_size(1610612736)    == "1.5 GiB"
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cairn {

// Returns: the number of bytes; nothing when the text is not a size, is negative, or exceeds 2^63 -
// 1.
std::optional<uint64_t> parse_size(std::string_view text);

// Accepts a bare number (milliseconds) or one with ms, s, min or h.
// Returns: milliseconds; nothing when the text is not a duration or does not fit.
std::optional<uint64_t> parse_duration_ms(std::string_view text);

// Returns: a decimal number with no sign, no suffix; nothing otherwise.
std::optional<uint64_t> parse_count(std::string_view text);

// For people: three significant digits, "0 B", "4 KiB", "1.25 MiB", "931 GiB".
std::string format_size(uint64_t bytes);

// For files that are parsed again: the largest unit that divides exactly, "64M", "1536M", "4097".
std::string format_size_exact(uint64_t bytes);

// For people: "0.4 ms", "12 ms", "3.21 s", "4 min 05 s", "2 h 03 min".
std::string format_duration(double seconds);

}  // namespace cairn
