// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/actor.h"

#include <sys/mman.h>

#include "base/system_call.h"

namespace cairn {

std::byte* Actor::bounce_blocks() {
  copy.count = 0;
  if (bounce == nullptr) {
    void* mapped = sys::mmap(nullptr, kBounceBlocks * kBlockBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!sys::is_error(mapped)) bounce = static_cast<std::byte*>(mapped);
  }
  return bounce;
}

// The owner died holding the lock. If that was between taking the block out of the directory (or
// moving it to another bucket) and freeing the bucket, then what the descriptor says is history:
// whoever waited for the block must look for it again, and the service's sweep frees the bucket.
[[gnu::cold]] void Actor::settle_stolen(BlockDescriptor& block) const {
  if (block.object_index() == ObjectIndex::kNone) return;
  const BucketIndex bucket = memory->index_of(block);
  if (memory->directory().find(block.object_index(), block.block_number()) == bucket) {
    // It may have died on the way to another bucket, with the mark there already.
    if (block.dirty_pages.load(std::memory_order_relaxed) != 0) memory->mark_dirty(bucket);
    return;
  }
  memory->directory().leave_behind(bucket);
  block.clear_identity();
  block.valid_pages.store(0, std::memory_order_relaxed);
  block.dirty_pages.store(0, std::memory_order_relaxed);
}

void Actor::drop_leases() {
  for (unsigned tier = 0; tier < memory->tier_count(); ++tier) {
    leases[tier].drop(memory->pool(static_cast<TierId>(tier)));
  }
  if (bounce != nullptr) sys::munmap(bounce, kBounceBlocks * kBlockBytes);
  bounce = nullptr;
}

}  // namespace cairn
