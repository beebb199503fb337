// SPDX-License-Identifier: Apache-2.0
// Puts in order, for the successor of a dead service, what that left in the node's memory. Clients
// are at work in the memory all the while.
//
// Invariants
//  1. Nothing of the dead service runs any more when take_over() begins (its process has been
//     waited for), and no thread of the successor has begun.
//  2. The name of the dead service dies first (OwnerTable::succeed()), so that waiters go on from
//     that instant, and the sweeps find all that bears it.
//  3. No word is believed: clients can write everywhere, and the dead service may have stopped in
//     the middle of anything. What disagrees is made to agree with the blocks and the directory,
//     under the locks that guard it.
//  4. Dirty stays dirty. A count that cannot be known while clients work stays too high and never
//     gets too low; the audit sets it right when nobody is attached (Reaper::owe_audit()).
//
// Thread safety: one thread, once for each service. Ownership: borrows the memory.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "service/attachment/sweep.h"

namespace cairn::node {

struct Takeover {
  Owner service;  // the successor's name
  // Of the dead service, and of clients that died unseen.
  SweepCounts swept;
  std::uint32_t locks = 0;     // of objects, descriptions and lines, and claims of blocks
  std::uint32_t requests = 0;  // taken by the dead service, to be taken again
  std::uint32_t holds = 0;     // of services, or of nobody
  std::uint32_t opens = 0;     // of files that the dead service was working on
  // Words that disagreed with others: of slabs, slots of the directory, blocks, marks and hints.
  std::uint32_t mended = 0;
  std::uint32_t corrected = 0;  // counts
  std::uint32_t unsettled = 0;  // files whose size and times were being set in the store
  // The dead service had begun to leave: clients write through (ServiceBoard::detached).
  bool was_leaving = false;
};

// Errors: kIncompatible when the memory is not what it was agreed to be; nothing is changed then.
Result<Takeover> take_over(NodeMemory& memory);

}  // namespace cairn::node
