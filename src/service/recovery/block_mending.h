// SPDX-License-Identifier: Apache-2.0
// Slabs, the directory and the descriptors of blocks say the same after this, whatever stood there.
// The directory decides where a block is, a descriptor whose block it is, and the pages what of it
// is dirty.
//
// Thread safety: one thread; any number of clients at work. What a living client has locked is left
// to it.
#pragma once

#include <cstdint>

#include "memory/tiers/actor.h"

namespace cairn::node {

// Words of slabs that no pool writes; slots of the directory that name no block; blocks in buckets
// that a pool would give out. To be called before the sweep, which counts slabs and buckets by
// these words. Returns how many words were wrong.
std::uint32_t mend_places(Actor& actor);

// Blocks that the directory does not know, states that disagree with the pages, dirty blocks that
// the flusher's map does not have. Returns how many there were.
std::uint32_t mend_blocks(Actor& actor);

}  // namespace cairn::node
