// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/dirty_blocks.h"

#include "base/check.h"

namespace cairn {

void DirtyBlocks::count(BucketIndex bucket, BlockDescriptor& block, Object& object,
                        std::uint32_t now_ms) const {
  CAIRN_DCHECK(!counts_as_dirty(block.state()));
  block.dirty_since_ms_.store(now_ms, std::memory_order_relaxed);
  mark(bucket);
  board_->dirty_bytes.fetch_add(block.bucket_bytes(), std::memory_order_relaxed);
  (void)widen_hints(block.block_number(), object);
  // First the time, for the flusher: dirty data that it sees has not been there since long ago.
  if (object.dirty_blocks.load(std::memory_order_relaxed) == 0)
    object.dirty_since_ms.store(now_ms, std::memory_order_relaxed);
  if (object.dirty_blocks.fetch_add(1, std::memory_order_acq_rel) == 0)
    object.dirty_since_ms.store(now_ms, std::memory_order_relaxed);
  board_->bell.ring();
}

bool DirtyBlocks::widen_hints(BlockNumber block, Object& object) {
  const std::uint32_t number = raw(block);
  std::uint32_t low = object.dirty_low.load(std::memory_order_relaxed);
  std::uint32_t high = object.dirty_high.load(std::memory_order_relaxed);
  const bool was_outside = number < low || number >= high;
  while (number < low && !object.dirty_low.compare_exchange_weak(low, number)) {
  }
  while (number >= high && !object.dirty_high.compare_exchange_weak(high, number + 1)) {
  }
  return was_outside;
}

bool DirtyBlocks::confirm(BucketIndex bucket, const BlockDescriptor& block, Object& object) const {
  CAIRN_DCHECK(raw(bucket) < bucket_count_);
  const std::uint64_t bit = std::uint64_t{1} << (raw(bucket) % 64);
  const bool was_unmarked = (map_[raw(bucket) / 64].load(std::memory_order_acquire) & bit) == 0;
  if (was_unmarked) mark(bucket);
  return widen_hints(block.block_number(), object) || was_unmarked;
}

void DirtyBlocks::discount(BucketIndex bucket, const BlockDescriptor& block, Object& object) const {
  CAIRN_DCHECK(!counts_as_dirty(block.state()) && block.dirty_pages() == 0);
  unmark(bucket);
  board_->dirty_bytes.fetch_sub(block.bucket_bytes(), std::memory_order_relaxed);
  const std::uint32_t before = object.dirty_blocks.fetch_sub(1, std::memory_order_acq_rel);
  CAIRN_DCHECK(before != 0);
  (void)before;
}

void DirtyBlocks::note_moved(BucketIndex from, const BlockDescriptor& old, BucketIndex to,
                             const BlockDescriptor& fresh) const {
  CAIRN_DCHECK(from != to);
  mark(to);
  unmark(from);
  board_->dirty_bytes.fetch_add(fresh.bucket_bytes(), std::memory_order_relaxed);
  board_->dirty_bytes.fetch_sub(old.bucket_bytes(), std::memory_order_relaxed);
}

}  // namespace cairn
