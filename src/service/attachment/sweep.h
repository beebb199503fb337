// SPDX-License-Identifier: Apache-2.0
// Putting the arena in order after deaths: what a dead owner locked, leased or held is found by its
// name.
//
// Invariants
//  1. An owner counts as dead before a sweep looks for it (OwnerTable::advance), so nothing new is
//     locked under its name.
//  2. Blocks before leases: a bucket that the dead owner had taken but not published is still in a
//     slab that is not free, and so is found.
//  3. Every repair is done under the lock it repairs, taken from the dead; clients go on meanwhile.
//
// Thread safety: one sweeping thread; any number of clients at work.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/tiers/actor.h"

namespace cairn::node {

struct SweepCounts {
  std::uint32_t blocks_unlocked = 0;  // published; what they hold is whole
  std::uint32_t buckets_freed = 0;    // taken, but never published
  std::uint32_t slabs = 0;            // leases returned
};

// Everything that any dead owner locked in the bucket descriptors, and all leases of dead owners.
SweepCounts sweep_buckets(Actor& actor);

// The files that the dead, or images which were replaced, were in the midst of writing. To be
// called before sweep_buckets() lets others have those blocks, and before sweep_holds().
void sweep_cut_writes(const NodeMemory& memory, std::span<const Owner> gone);
// The same of all who are dead, for a successor: the dead service may not have come to it.
void sweep_cut_writes_of_dead(const NodeMemory& memory);

struct TransitHold {
  HoldIndex hold;
  Owner owner;
};

// Releases what the owners in `dead` held: open descriptions and through mode. Holds in transit
// belong to a child that may still take them over; they are appended to `in_transit` and left
// alone. Returns how many were released.
std::uint32_t sweep_holds(Actor& actor, std::span<const Owner> dead,
                          std::vector<TransitHold>* in_transit);

// Releases one hold in transit that nobody took over.
void release_transit(Actor& actor, const TransitHold& hold);

// Releases the locks of objects, descriptions and hash lines that dead owners left, and forgets
// dead flushers. Waiters take such locks over anyway; this only keeps a name from living on until
// its slot's generation comes round again. Returns how many were released.
std::uint32_t sweep_locks(Actor& actor);

// Files whose size and times a dead owner was setting in the store, or had said so and not begun:
// they are to be set again. Returns how many there were.
std::uint32_t sweep_settlings(Actor& actor);

// Drops the blocks behind the new end of files that a dead owner was cutting: nobody can read them,
// and the next to open, cut or extend the file may be long in coming. Returns how many such files
// there were.
std::uint32_t sweep_cuts(Actor& actor);

// Locks in the arena that name a dead owner. For `cairn status` and tests.
std::uint32_t count_dead_locks(const NodeMemory& memory);

}  // namespace cairn::node
