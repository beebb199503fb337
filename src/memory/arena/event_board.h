// SPDX-License-Identifier: Apache-2.0
// What the event reader of the service wants to hear, and the bell that wakes it for an urgent
// event (memory/arena/event_ring.h).
//
//   word               written by                          read by
//   bell               clients ring, the reader sleeps     both
//   is_urgent          clients set it, the reader clears   the reader
//   wanted             service                             clients, unless the call is a plain hit
//   opens_are_urgent   service                             clients, at each open
//
// Thread safety: atomics. Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "memory/arena/bell.h"

namespace cairn {

// The calls that clients report: each level includes those before it.
// kWaits: fsyncs, and what calls on each file add up to. kWrites: each write.
enum class EventLevel : std::uint32_t { kNone = 0, kReads, kWaits, kWrites };

struct alignas(64) EventBoard {
  Bell bell;
  // Some of what clients have told since the reader's last look cannot wait.
  std::atomic<std::uint32_t> is_urgent;
  std::atomic<EventLevel> wanted;
  // Which files are opened decides what is fetched next: each open wakes the service.
  std::atomic<std::uint32_t> opens_are_urgent;

  bool wants(EventLevel level) const {
    CAIRN_DCHECK(level != EventLevel::kNone);
    return wanted.load(std::memory_order_relaxed) >= level;
  }
  // An event that cannot wait is in its ring.
  void note_urgent() {
    if (is_urgent.load(std::memory_order_relaxed) == 0)
      is_urgent.store(1, std::memory_order_seq_cst);
    bell.ring_once();
  }
};
static_assert(sizeof(EventBoard) == 64, "its words share no line with another board");
static_assert(std::is_standard_layout_v<EventBoard>, "it lies in shared memory");

}  // namespace cairn
