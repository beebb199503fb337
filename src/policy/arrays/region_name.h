// SPDX-License-Identifier: Apache-2.0
// Makes the two words of a region's name out of the words that tell it from others.
//
// FNV-1a (Fowler, Noll and Vo) of the same words, from two beginnings.
//
// Thread safety: a value.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace cairn::arrays {

class RegionName {
 public:
  void add(std::uint64_t word) {
    for (std::uint64_t& sum : sums_) {
      for (unsigned shift = 0; shift < 64; shift += 8)
        sum = (sum ^ (word >> shift & 0xff)) * 0x100000001b3ULL;
    }
  }
  void add_all(std::span<const std::uint64_t> words) {
    for (const std::uint64_t word : words) add(word);
  }
  const std::array<std::uint64_t, 2>& words() const { return sums_; }

 private:
  std::array<std::uint64_t, 2> sums_{0xcbf29ce484222325ULL, 0x9ae16a3b2f90404fULL};
};

}  // namespace cairn::arrays
