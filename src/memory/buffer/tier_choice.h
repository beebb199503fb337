// SPDX-License-Identifier: Apache-2.0
// Which tier a new block tries first, as the node's plan and the file's own handling say.
//
// Thread safety: reads published words; the cursor is the actor's.
#pragma once

#include "memory/tiers/actor.h"

namespace cairn {

// One element of the plan serves as many blocks as one lease, so that neighbours lie together.
inline constexpr std::uint32_t kBlocksPerElement = Lease::kSlabsMax;

// The tier where a file's blocks belong, if it has one: what the rules name, or its element of a
// plan that keeps files together. Blocks that are there, or above, are not moved up when they are
// read.
inline std::optional<TierId> home_of(const PlacementBoard& board, ObjectIndex index,
                                     const ObjectHandling& handling) {
  if (handling.home) return handling.home;
  if (!board.is_together(handling.policy)) return std::nullopt;
  // Fibonacci hashing (Knuth, TAOCP 3, 6.4): neighbouring records spread evenly over the pattern.
  return board.plans[handling.policy].at((raw(index) * 0x9e3779b9U) >> 26);
}

// Whether the block lies behind those of its file that a policy lets into RAM.
inline bool is_rationed(const PlacementBoard& board, const ObjectHandling& handling,
                        BlockNumber number) {
  const std::uint32_t blocks = board.memory_blocks[handling.policy].load(std::memory_order_relaxed);
  return __builtin_expect(blocks != 0, 0) && raw(number) >= blocks && !handling.pinned;
}

inline TierId first_tier(Actor& actor, ObjectIndex index, BlockNumber number,
                         const PartHandling& part) {
  if (part.home) return *part.home;
  const PlacementBoard& board = actor.memory->placement_board();
  ObjectHandling handling = actor.object(index).handling();
  TierId first{};
  if (const auto home = home_of(board, index, handling)) {
    // For good: the next plan may have another element there.
    if (!handling.home) {
      handling.home = home;
      actor.object(index).set_handling(handling);
    }
    first = *home;
  } else {
    first = board.plans[handling.policy].at(actor.plan_cursor++ / kBlocksPerElement);
  }
  const bool goes_below = first == TierId::kMemory && is_rationed(board, handling, number);
  return goes_below ? static_cast<TierId>(1) : first;
}

}  // namespace cairn
