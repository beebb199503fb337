// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and are the same in every run: splitmix64 (Steele, Lea, Flood: "Fast
// Splittable Pseudorandom Number Generators", OOPSLA 2014).
//
// Thread safety: none.
#pragma once

#include <cstdint>

namespace cairn {

class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t value = state_ += 0x9e3779b97f4a7c15ULL;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
    value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
    return value ^ (value >> 31);
  }
  // Requires: bound > 0. Returns: less than it.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>((next() >> 32) * bound >> 32);
  }
  // Returns: 0 <= number < 1, of 53 bits.
  double fraction() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace cairn
