// SPDX-License-Identifier: Apache-2.0
// What the service does about the buckets of the dead (service/attachment/sweep.cc), whose rooms
// are not compiled for this suite.
//
// Thread safety: as the pool's.
#pragma once

#include "memory/pool/bucket_pool.h"

namespace cairn::stepping {

template <typename OnFreed>
void settle_bucket(BucketPool& pool, LockedBlock block, OnFreed&& on_freed) {
  if (block.descriptor().object_index() != ObjectIndex::kNone || !pool.is_taken(block.bucket()))
    return block.set_changed();
  on_freed(block.bucket());
  const SizeClass size_class = pool.class_of(block.bucket());
  pool.release(std::move(block).disown(size_class));
}

// Calls on_freed(bucket) before a bucket goes back to the pool.
template <typename OnFreed>
void sweep(BucketPool& pool, const BlockWorker& service, OnFreed&& on_freed) {
  const OwnerTable& owners = service.catalog->owners();
  pool.for_each_bucket([&](BucketIndex bucket) {
    BlockDescriptor& block = service.catalog->block(bucket);
    const std::uint64_t seen = block.word();
    const Owner owner = BlockDescriptor::owner_in(seen);
    if (owner && !owners.is_alive(owner))
      return settle_bucket(pool, LockedBlock(service, bucket), on_freed);
    const bool is_orphan =
        !owner && block.object_index() == ObjectIndex::kNone && pool.is_taken(bucket);
    if (!is_orphan) return;
    if (LockedBlock locked = LockedBlock::try_lock(service, bucket))
      settle_bucket(pool, std::move(locked), on_freed);
  });
  (void)pool.reclaim_dead_leases(owners);
}

}  // namespace cairn::stepping
