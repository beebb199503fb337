// SPDX-License-Identifier: Apache-2.0
// How the devices below the tiers are doing, for those who decide whether to use one now.
//
//   word         written by                              read by
//   read_ms      clients that read from the device       movers: they give way to readers
//   read_around  service (capacity/read_balancer.h)      clients, at a read of a file tier
//   bandwidth    service (capacity/placement_engine.h)   movers, organizer
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/ids.h"

namespace cairn {

struct alignas(64) DeviceBoard {
  // When a program last read from the device of a tier (coarse ms).
  std::atomic<std::uint32_t> read_ms[kTiersMax];
  // So many of 256 reads of a file tier go to the backing store: its device is saturated.
  std::atomic<std::uint32_t> read_around[kTiersMax];
  // Bytes per second that the device of a tier takes, measured; 0: nobody has measured it.
  alignas(64) std::atomic<double> bandwidth[kTiersMax];

  // At most one store a millisecond: readers share the line.
  void note_read(TierId tier, std::uint32_t now_ms) {
    CAIRN_DCHECK(raw(tier) < kTiersMax);
    std::atomic<std::uint32_t>& seen = read_ms[raw(tier)];
    if (seen.load(std::memory_order_relaxed) != now_ms)
      seen.store(now_ms, std::memory_order_relaxed);
  }
};
static_assert(offsetof(DeviceBoard, bandwidth) == 64, "readers do not disturb movers");
static_assert(sizeof(DeviceBoard) == 2 * 64);
static_assert(std::atomic<double>::is_always_lock_free, "a lock of one process excludes no other");

}  // namespace cairn
