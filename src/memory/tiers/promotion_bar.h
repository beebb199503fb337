// SPDX-License-Identifier: Apache-2.0
// Which blocks of file tiers are worth a place in RAM when it is full: those that were used more
// often than what had to leave for the last ones. A scan of more than RAM holds is then read where
// it lies, instead of pushing everything else down and being pushed down itself (the scan
// resistance of 2Q: Johnson, Shasha, VLDB 1994).
//
// The bar falls after a second, so that what was hot long ago does not keep RAM for ever.
//
// Thread safety: one writer (the organizer), any readers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "memory/pool/bucket_pool.h"
#include "memory/tiers/organizer_board.h"

namespace cairn {

class PromotionBar {
 public:
  static constexpr std::uint32_t kHoldsMs = 1000;

  // `frequency`: of the blocks that had to leave.
  static void raise(OrganizerBoard& board, std::uint32_t frequency, std::uint32_t now_ms) {
    board.promotion_bar.store(std::uint64_t{now_ms} << 32 | frequency, std::memory_order_relaxed);
  }
  // `memory`: the pool of the RAM tier.
  static bool is_passed(const OrganizerBoard& board, const BucketPool& memory,
                        std::uint32_t frequency, std::uint32_t now_ms) {
    if (memory.free_slabs() > board.roomy_slabs.load(std::memory_order_relaxed)) return true;
    const std::uint64_t bar = board.promotion_bar.load(std::memory_order_relaxed);
    const auto raised_ms = static_cast<std::uint32_t>(bar >> 32);
    const bool holds = elapsed_ms(now_ms, raised_ms) < kHoldsMs;
    const std::uint32_t least = holds ? static_cast<std::uint32_t>(bar) : 0;
    return frequency > std::max(least, 1U);  // it is 1 when nobody has come back to the block yet
  }
};

}  // namespace cairn
