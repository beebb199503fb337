// SPDX-License-Identifier: Apache-2.0
// How far the memory of the RAM tier is in use, and how far the service has had it allocated ahead
// of use (service/capacity/page_warmer.h).
//
//   word        written by                                   read by
//   used_slabs  clients that lease a slab for the first time  both
//   warm_slabs  the warmer                                    clients
//   bell        clients ring, the warmer sleeps               both
//
// Invariant: used_slabs and warm_slabs never fall.
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "memory/arena/bell.h"

namespace cairn {

struct alignas(64) WarmerBoard {
  // Memory that is kept allocated ahead of use: 16 to 256 MiB.
  static constexpr std::uint32_t kAheadSlabsMin = 256;
  static constexpr std::uint32_t kAheadSlabsMax = 4096;
  static_assert(kAheadSlabsMin <= kAheadSlabsMax);

  std::atomic<std::uint32_t> used_slabs;  // the highest that was ever leased, and one
  std::atomic<std::uint32_t> warm_slabs;
  Bell bell;

  // Slabs below `past` are in use: wakes the warmer when few of those behind are warm.
  void note_used(std::uint32_t past);
};
static_assert(sizeof(WarmerBoard) == 64, "one line");

}  // namespace cairn
