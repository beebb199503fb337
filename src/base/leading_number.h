// SPDX-License-Identifier: Apache-2.0
// A number at the beginning of a text of our own environment. libc's strtoul() touches two pages of
// its tables for it, which no start of a program has to pay.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

namespace cairn {

// Digits up to the first other character, modulo 2^32. `base` is 10 or 16, in lower or upper case.
constexpr std::uint32_t leading_number(const char* text, unsigned base) {
  std::uint32_t number = 0;
  for (;; ++text) {
    const char lower = static_cast<char>(*text | 0x20);
    unsigned digit = base;
    if (*text >= '0' && *text <= '9') digit = static_cast<unsigned>(*text - '0');
    if (lower >= 'a' && lower <= 'f') digit = static_cast<unsigned>(lower - 'a') + 10;
    if (digit >= base) return number;
    number = number * base + digit;
  }
}
static_assert(leading_number("4711,", 10) == 4711 && leading_number("", 10) == 0);
static_assert(leading_number("fFFffffe", 16) == 0xfffffffe && leading_number("1a", 10) == 1);

}  // namespace cairn
