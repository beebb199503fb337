// SPDX-License-Identifier: Apache-2.0
// Where new blocks go, as the service has decided and the clients carry out: a cyclic pattern of
// tiers. One cache line, so that placing a block costs one load.
//
// A thread that places a block takes the next element of the pattern (by a count of its own),
// or, where the pieces of a file are to stay together, the element of the file. A tier that has no
// room is passed over downwards, then upwards.
//
// Thread safety: one writer (the service), any readers; each word is taken by itself, and a pattern
// that is half old is as good as either.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

struct alignas(64) PublishedPlan {
  static constexpr unsigned kElements = 64;
  static constexpr unsigned kPerWord = 8;

  std::atomic<std::uint64_t> words[kElements / kPerWord];

  TierId at(unsigned element) const {
    const std::uint64_t word =
        words[element % kElements / kPerWord].load(std::memory_order_relaxed);
    return static_cast<TierId>(word >> (element % kPerWord * 8) & 0xff);
  }
  void store(const std::array<TierId, kElements>& pattern) {
    for (unsigned word = 0; word < kElements / kPerWord; ++word) {
      std::uint64_t packed = 0;
      for (unsigned at = 0; at < kPerWord; ++at)
        packed |= std::uint64_t{raw(pattern[word * kPerWord + at])} << (at * 8);
      words[word].store(packed, std::memory_order_relaxed);
    }
  }
};
static_assert(sizeof(PublishedPlan) == 64, "one cache line");

// A node's policies, by number: 0 is the one of the run or node, the rest are those that rules
// name.
inline constexpr unsigned kPlansMax = 16;

}  // namespace cairn
