// SPDX-License-Identifier: Apache-2.0
// The one place where a block's change between clean and dirty is counted, so that the object, the
// node and the flusher's map never disagree.
//
// Thread safety: the caller holds the block's lock.
#pragma once

#include <cstdint>

#include "memory/tiers/actor.h"

namespace cairn {

// The block gets its first dirty page. Wakes the flusher if it sleeps.
void note_block_dirty(Actor& actor, BucketIndex bucket, ObjectIndex object);

// The last dirty page of the block was stored or dropped.
void note_block_clean(Actor& actor, BucketIndex bucket, ObjectIndex object);

// A dirty block moved from one bucket to another.
void note_dirty_block_moved(Actor& actor, BucketIndex from, BucketIndex to);

}  // namespace cairn
