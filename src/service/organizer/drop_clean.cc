// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/drop_clean.h"

namespace cairn {

bool drop_clean(Actor& actor, BucketIndex bucket, PlacementReason reason) {
  const NodeMemory& memory = *actor.memory;
  LockedBlock block = LockedBlock::try_lock(actor.worker(), bucket);
  if (!block) return false;
  const BlockDescriptor& descriptor = block.descriptor();
  const bool droppable =
      descriptor.object_index() != ObjectIndex::kNone && descriptor.state() != BlockState::kFree &&
      descriptor.dirty_pages() == 0 &&
      memory.directory().find(descriptor.object_index(), descriptor.block_number()) == bucket;
  if (!droppable) return false;
  UnclaimedBlock unclaimed(block);
  if (!unclaimed) return false;
  memory.journal().note(raw(memory.tier_of(bucket)), MoveJournal::kDropped, reason,
                        memory.bucket_bytes(bucket));
  memory.note_unused(bucket);
  memory.pool(memory.tier_of(bucket)).release(static_cast<UnclaimedBlock&&>(unclaimed).vacate());
  actor.count(Counter::kEvictedBlocks, 1);
  return true;
}

}  // namespace cairn
