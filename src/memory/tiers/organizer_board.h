// SPDX-License-Identifier: Apache-2.0
// Words between clients and the organizer: the tiers that are short of room, the programs that wait
// for it, and the use that earns a block a place in RAM.
//
//   words                              written by                     read by
//   bell                               clients ring, it sleeps        both
//   rank_wanted                        organizer; a client clears it  clients that note a use
//   room_wanted_ms, room_missed_ms     clients that wait for RAM      clients, organizer's movers
//   room_made                          movers                         clients that wait
//   low_slabs, roomy_slabs,            service                        clients, where they take or
//   reads_stay_above, promotion_bar                                   move a block
//
// Thread safety: atomics; each word is taken by itself. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/bell.h"

namespace cairn {

struct alignas(64) OrganizerBoard {
  Bell bell;
  // Not 0: the organizer sleeps until somebody reads, to see what is hot. The reader rings once.
  std::atomic<std::uint32_t> rank_wanted;

  // When a program last waited for room in RAM, and when it did so in vain (coarse ms).
  alignas(64) std::atomic<std::uint32_t> room_wanted_ms;
  std::atomic<std::uint32_t> room_missed_ms;
  // How often blocks have left RAM for another tier.
  std::atomic<std::uint32_t> room_made;

  // A tier with fewer free slabs wakes the organizer.
  alignas(64) std::atomic<std::uint32_t> low_slabs[kTiersMax];
  // With more free slabs of RAM than that, each block that a program reads moves up into it. With
  // fewer, only one that passes the bar (memory/tiers/promotion_bar.h).
  std::atomic<std::uint32_t> roomy_slabs;
  // Not 0: a block that is read for the first time is not worth a write to any tier below. Without
  // room in RAM it is not placed.
  std::atomic<std::uint32_t> reads_stay_above;
  std::atomic<std::uint64_t> promotion_bar;

  // Whether `free_slabs` of a tier are few enough to wake the organizer.
  bool is_short(TierId tier, std::uint32_t free_slabs) const {
    return free_slabs < low_slabs[raw(tier)].load(std::memory_order_relaxed);
  }
};
static_assert(sizeof(OrganizerBoard) == 3 * 64, "three lines: who rings, who waits, who places");
static_assert(offsetof(OrganizerBoard, room_wanted_ms) == 64);
static_assert(offsetof(OrganizerBoard, low_slabs) == 2 * 64);

}  // namespace cairn
