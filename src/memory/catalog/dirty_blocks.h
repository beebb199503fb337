// SPDX-License-Identifier: Apache-2.0
// The counts of what is dirty: of an object, of the node, and the map by which the flusher finds
// its work. The hook of a block's transitions (BlockCatalog::pass()) alone changes them, so that
// they never disagree.
//
// A block is counted before its state says that it is dirty, and no longer counted after its state
// has said that it is clean: a death in between leaves a count too high, which costs a look and no
// data.
//
// Thread safety: the caller holds the block's lock; the map and the counts are atomic.
// Ownership: the words live in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "memory/catalog/block.h"
#include "memory/catalog/flusher_board.h"
#include "memory/catalog/object.h"

namespace cairn {

class DirtyBlocks {
 public:
  DirtyBlocks() = default;
  // `map` has a bit for each of `bucket_count` buckets.
  DirtyBlocks(std::atomic<std::uint64_t>* map, std::uint32_t bucket_count, FlusherBoard* board)
      : map_(map), bucket_count_(bucket_count), board_(board) {}

  // The block turns dirty, or has turned clean. Requires: the lock.
  void count(BucketIndex bucket, BlockDescriptor& block, Object& object,
             std::uint32_t now_ms) const;
  void discount(BucketIndex bucket, const BlockDescriptor& block, Object& object) const;
  // A dirty block goes from one bucket to another. Requires: both locks.
  void note_moved(BucketIndex from, const BlockDescriptor& old, BucketIndex to,
                  const BlockDescriptor& fresh) const;

  // For a successor of a dead service: a block that is dirty is in the map and in the hints of its
  // object, whatever stood there. Returns whether it was missing in one of them.
  bool confirm(BucketIndex bucket, const BlockDescriptor& block, Object& object) const;

  // One bit per bucket that may be dirty. Set before a block turns dirty.
  void mark(BucketIndex bucket) const {
    CAIRN_DCHECK(raw(bucket) < bucket_count_);
    auto& word = map_[raw(bucket) / 64];
    const std::uint64_t bit = std::uint64_t{1} << (raw(bucket) % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) word.fetch_or(bit);
  }
  template <typename Visit>
  void for_each_maybe_dirty(Visit&& visit) const {
    for (std::uint32_t word = 0; word <= bucket_count_ / 64; ++word) {
      std::uint64_t bits = map_[word].load(std::memory_order_acquire);
      for (; bits != 0; bits &= bits - 1) {
        const std::uint32_t index = word * 64 + static_cast<unsigned>(__builtin_ctzll(bits));
        if (index < bucket_count_) visit(static_cast<BucketIndex>(index));
      }
    }
  }

 private:
  static bool widen_hints(BlockNumber number, Object& object);
  void unmark(BucketIndex bucket) const {
    map_[raw(bucket) / 64].fetch_and(~(std::uint64_t{1} << (raw(bucket) % 64)));
  }

  std::atomic<std::uint64_t>* map_ = nullptr;
  std::uint32_t bucket_count_ = 0;
  FlusherBoard* board_ = nullptr;
};

}  // namespace cairn
