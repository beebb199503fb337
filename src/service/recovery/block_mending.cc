// SPDX-License-Identifier: Apache-2.0
#include "service/recovery/block_mending.h"

#include <optional>
#include <utility>

#include "base/check.h"
#include "memory/catalog/block_life.h"
#include "memory/pool/bucket_pool.h"
#include "service/attachment/used_pages.h"

namespace cairn::node {
namespace {

bool is_place(const NodeMemory& memory, BucketIndex bucket) {
  const BlockDescriptor& block = memory.block(bucket);
  const std::uint64_t identity = block.identity();
  const ObjectIndex object = BlockDescriptor::object_in(identity);
  return object != ObjectIndex::kNone &&
         memory.directory().find(object, BlockDescriptor::number_in(identity)) == bucket;
}

// A bucket that somebody has locked may be about to become the place of a block.
std::optional<SizeClass> block_in(const NodeMemory& memory, BucketIndex bucket) {
  const BlockDescriptor& block = memory.block(bucket);
  if (!BlockDescriptor::is_locked(block.word()) && !is_place(memory, bucket)) return std::nullopt;
  return block.size_class();
}

std::uint32_t mend_slot(Actor& actor, BucketIndex bucket, std::atomic<std::uint64_t>& slot) {
  const NodeMemory& memory = *actor.memory;
  CAIRN_CHECK(bucket != BucketIndex::kNone);
  if (!is_place(memory, bucket)) {
    const LockedBlock locked = LockedBlock::try_lock(actor.worker(), bucket);
    return locked && memory.directory().empty_stray(bucket, slot) ? 1 : 0;
  }
  BucketPool& pool = memory.pool(memory.tier_of(bucket));
  const bool was_free = pool.confirm_taken(bucket, memory.block(bucket).size_class(),
                                           [&] { return is_place(memory, bucket); });
  return was_free ? 1 : 0;
}

// Whether the descriptor names what can be a block: the bytes of files end below the last number.
bool names_block(const NodeMemory& memory, const BlockDescriptor& block) {
  const ObjectIndex object = block.object_index();
  return memory.objects().is_index(object) && memory.objects().at(object).has(kObjectLive) &&
         raw(block.block_number()) != UINT32_MAX;
}

// Whether a look without the lock finds nothing to mend.
bool seems_sound(const NodeMemory& memory, BucketIndex bucket, SizeClass size_class) {
  const BlockDescriptor& block = memory.block(bucket);
  const BlockState state = block.state();
  const std::uint16_t valid = block.valid_pages();
  return static_cast<unsigned>(state) < kBlockStates && state != BlockState::kFree &&
         agrees(state, valid, block.dirty_pages()) && valid >> pages_in(size_class) == 0 &&
         block.size_class() == size_class && names_block(memory, block) && is_place(memory, bucket);
}

// The directory has lost the block, or the object has: what is dirty of a file that lives finds its
// place again. False when the block is given up.
bool finds_place_again(Actor& actor, LockedBlock& block) {
  const NodeMemory& memory = *actor.memory;
  const ObjectIndex object = block.descriptor().object_index();
  if (!names_block(memory, block.descriptor()) || block.descriptor().valid_pages() == 0)
    return false;
  const bool is_welcome =
      block.descriptor().dirty_pages() != 0 || actor.object(object).takes_blocks();
  return is_welcome &&
         memory.directory().publish(block.bucket(), actor.self, actor.owners()) == block.bucket();
}

std::uint32_t mend_block(Actor& actor, BucketPool& pool, BucketIndex bucket) {
  const NodeMemory& memory = *actor.memory;
  const BlockDescriptor& block = memory.block(bucket);
  const ObjectIndex object = block.object_index();
  if (object == ObjectIndex::kNone) return 0;
  std::uint32_t mended = 0;
  const SizeClass size_class = pool.class_of(bucket);
  if (!seems_sound(memory, bucket, size_class)) {
    LockedBlock locked = LockedBlock::try_lock(actor.worker(), bucket);
    if (!locked || block.object_index() == ObjectIndex::kNone) return 0;
    const bool is_lost = !names_block(memory, block) || !is_place(memory, bucket);
    if (is_lost) ++mended;
    if (is_lost && !finds_place_again(actor, locked)) {
      FreshBlock fresh = std::move(locked).disown(pool.class_of(bucket));
      if (pool.is_taken(bucket)) pool.release(std::move(fresh));
      return mended;
    }
    if (pool.is_taken(bucket) && locked.mend(pool.class_of(bucket))) ++mended;
  }
  const bool was_lost = block.dirty_pages() != 0 && block.object_index() == object &&
                        memory.catalog().dirty().confirm(bucket, block, actor.object(object));
  // One that its program has stored meanwhile was not: its mark costs the flusher a look.
  if (was_lost && block.dirty_pages() != 0) ++mended;
  return mended;
}

}  // namespace

std::uint32_t mend_places(Actor& actor) {
  const NodeMemory& memory = *actor.memory;
  std::uint32_t mended = 0;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    mended += memory.pool(static_cast<TierId>(tier)).mend_words([&](BucketIndex bucket) {
      return block_in(memory, bucket);
    });
  }
  const UsedPages pages(memory.control());
  const std::uint32_t emptied = memory.directory().for_each_place(
      [&pages](const void* address) { return pages.has(address); },
      [&](BucketIndex bucket, std::atomic<std::uint64_t>& slot) {
        mended += mend_slot(actor, bucket, slot);
      });
  return mended + emptied;
}

std::uint32_t mend_blocks(Actor& actor) {
  const NodeMemory& memory = *actor.memory;
  std::uint32_t mended = 0;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    BucketPool& pool = memory.pool(static_cast<TierId>(tier));
    pool.for_each_bucket([&](BucketIndex bucket) { mended += mend_block(actor, pool, bucket); });
  }
  return mended;
}

}  // namespace cairn::node
