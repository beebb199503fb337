// SPDX-License-Identifier: Apache-2.0
// The flush's way to a block.
//
// Thread safety: any thread.
#pragma once

#include "memory/catalog/block_life.h"

namespace cairn {

// Locks the block if anything of it may be dirty. Empty when the block is not
// in the tiers, or was clean at some moment of the call.
template <typename Pause = NoPause>
LockedBlock lock_unless_clean(const BlockWorker& worker, ObjectIndex object, BlockNumber number,
                              const Pause& pause = Pause()) {
  LockedBlock block;
  for (;;) {
    const BucketIndex bucket = worker.catalog->directory().find(object, number, pause);
    if (bucket == BucketIndex::kNone) return block;
    const BlockDescriptor& descriptor = worker.catalog->block(bucket);
    pause.at_step();
    if (descriptor.is_clean_place_of(object, number, pause)) return block;
    pause.before_lock(descriptor);
    if (block.lock_place(worker, bucket, object, number)) return block;
  }
}

}  // namespace cairn
