// SPDX-License-Identifier: Apache-2.0
// Numbers in as few bytes as they need: seven bits a byte, the lowest first, the eighth bit set
// when another byte follows (LEB128); signed differences with the sign in the lowest bit.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <span>

#include "service/trace/trace_format.h"

namespace cairn {

inline void put_varint(TraceBytes* bytes, std::uint64_t number) {
  for (; number >= 0x80; number >>= 7) {
    bytes->push_back(static_cast<std::uint8_t>(number | 0x80));
  }
  bytes->push_back(static_cast<std::uint8_t>(number));
}

// Takes a number off the front. Returns: false when the bytes end within it or it is too large.
inline bool take_varint(std::span<const std::uint8_t>* bytes, std::uint64_t* number) {
  *number = 0;
  for (unsigned shift = 0; shift < 64 && !bytes->empty(); shift += 7) {
    const std::uint64_t byte = bytes->front();
    *bytes = bytes->subspan(1);
    // The tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) return false;
    *number |= (byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

// Small numbers for small differences of either sign.
constexpr std::uint64_t fold_sign(std::uint64_t difference) {
  return difference << 1 ^ (0 - (difference >> 63));
}
constexpr std::uint64_t unfold_sign(std::uint64_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}
constexpr std::uint32_t fold_sign_32(std::uint32_t difference) {
  return difference << 1 ^ (0 - (difference >> 31));
}
constexpr std::uint32_t unfold_sign_32(std::uint32_t folded) {
  return folded >> 1 ^ (0 - (folded & 1));
}

static_assert(unfold_sign(fold_sign(UINT64_MAX)) == UINT64_MAX);
static_assert(fold_sign(UINT64_MAX) == 1, "a small difference below nothing is a small number");
static_assert(unfold_sign_32(fold_sign_32(UINT32_MAX)) == UINT32_MAX);
static_assert(fold_sign_32(1) == 2);

}  // namespace cairn
