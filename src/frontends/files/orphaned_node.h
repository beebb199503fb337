// SPDX-License-Identifier: Apache-2.0
// Keeper and service have died in one instant: nobody is left to store what is dirty, and no
// successor comes. Each process that finds out stores what it has open for writing, through its own
// descriptors, and all write through from then on. What nobody has open any more is lost, unless it
// is in a durable tier.
//
// A process finds out when it opens, closes or stores a file, or by one of many writes; a look is
// a few system calls, at most once in kEveryMs.
//
// Thread safety: any thread. Ownership: none.
#pragma once

#include <cstdint>

#include "frontends/client/session.h"

namespace cairn {

// By calls that take their time anyway.
void look_after_node();

// Stores the object through a descriptor of this process that may write, for one that may only read
// and that has no service to ask; `durable`: flushes it, too. Returns whether that was possible.
bool store_by_own_writer(Actor& actor, ObjectIndex object, bool durable = false);

// By a write that may be a hit: one in many looks. Each thread counts its own, because a count that
// all share would go from processor to processor with each write.
inline void look_after_node_at_write() {
  constexpr std::uint32_t kWritesPerLook = 16;
  static constinit thread_local std::uint32_t writes = 0;
  if (__builtin_expect(writes++ % kWritesPerLook == 0, 0)) look_after_node();
}

}  // namespace cairn
