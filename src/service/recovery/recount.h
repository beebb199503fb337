// SPDX-License-Identifier: Apache-2.0
// Counts of blocks that a death left too high: of each object (blocks, dirty blocks), of the node
// (dirty bytes), of what was fetched ahead and waits for its use.
//
// They are counted anew while clients change them. Two looks at all blocks, with the count read in
// between, find nothing locked, nothing come, gone or changed: then the count of an object that was
// read is to be what was found, and becomes that if it still is what it was. Flushes that end
// meanwhile only make the count lower than what was read, and the change fails. So no count of an
// object gets too low, and one that somebody is at work on stays as it is. The counts of the node
// are lowered by what both looks have found too much in them; the waiting bytes are a statistic,
// and a reader that stops between its mark and its count for both looks makes them too low.
//
// Thread safety: one thread; any number of clients at work.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

// Returns how many counts were corrected.
std::uint32_t correct_counts_of_blocks(const NodeMemory& memory);

}  // namespace cairn::node
