// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/dirty_accounting.h"

#include "base/clock.h"

namespace cairn {
namespace {

std::uint64_t bucket_bytes(const BlockDescriptor& block) {
  return bytes_in(static_cast<SizeClass>(block.size_class));
}

}  // namespace

void note_block_dirty(Actor& actor, BucketIndex bucket, ObjectIndex object_index) {
  const NodeMemory& memory = *actor.memory;
  BlockDescriptor& block = memory.block(bucket);
  Object& object = actor.object(object_index);
  const std::uint32_t now = monotonic_coarse_ms();
  block.dirty_since_ms.store(now, std::memory_order_relaxed);
  memory.mark_dirty(bucket);
  memory.header().dirty_bytes.fetch_add(bucket_bytes(block), std::memory_order_relaxed);
  const std::uint32_t number = raw(block.block_number());
  std::uint32_t low = object.dirty_low.load(std::memory_order_relaxed);
  while (number < low && !object.dirty_low.compare_exchange_weak(low, number)) {
  }
  std::uint32_t high = object.dirty_high.load(std::memory_order_relaxed);
  while (number >= high && !object.dirty_high.compare_exchange_weak(high, number + 1)) {
  }
  if (object.dirty_blocks.fetch_add(1, std::memory_order_acq_rel) == 0) {
    object.dirty_since_ms.store(now, std::memory_order_relaxed);
  }
  memory.wake_flusher();
}

void note_block_clean(Actor& actor, BucketIndex bucket, ObjectIndex object_index) {
  const NodeMemory& memory = *actor.memory;
  memory.clear_dirty(bucket);
  memory.header().dirty_bytes.fetch_sub(bucket_bytes(memory.block(bucket)),
                                        std::memory_order_relaxed);
  actor.object(object_index).dirty_blocks.fetch_sub(1, std::memory_order_acq_rel);
}

void note_dirty_block_moved(Actor& actor, BucketIndex from, BucketIndex to) {
  const NodeMemory& memory = *actor.memory;
  memory.mark_dirty(to);
  memory.clear_dirty(from);
  memory.header().dirty_bytes.fetch_add(bucket_bytes(memory.block(to)), std::memory_order_relaxed);
  memory.header().dirty_bytes.fetch_sub(bucket_bytes(memory.block(from)),
                                        std::memory_order_relaxed);
}

}  // namespace cairn
