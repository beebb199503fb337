// SPDX-License-Identifier: Apache-2.0
// A hash of a 64-bit value in which every bit depends on every other: the finalizer of splitmix64
// (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014).
//
// Thread safety: values.
#pragma once

#include <cstdint>

namespace cairn {

constexpr std::uint64_t mixed_bits(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

}  // namespace cairn
