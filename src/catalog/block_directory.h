// SPDX-License-Identifier: Apache-2.0
// Where block i of object o is: a hash from (object, block number) to the bucket descriptor, over
// all tiers.
//
// Four neighbouring blocks share a home line, so a sequential reader finds the next three in a line
// it has already.
//
// Thread safety: find() without a lock; publish(), move() and withdraw() lock one line.
#pragma once

#include "arena/owner.h"
#include "base/ids.h"
#include "catalog/block.h"
#include "catalog/hash_lines.h"

namespace cairn {

class BlockDirectory {
 public:
  BlockDirectory() = default;
  BlockDirectory(HashLines hash, BlockDescriptor* descriptors)
      : hash_(hash), descriptors_(descriptors) {}

  BlockDescriptor& at(BucketIndex index) const { return descriptors_[raw(index)]; }

  // Returns kNone when the block is not resident. The answer may be stale at once: readers verify
  // the descriptor by its sequence, writers lock it and check that it still holds the block.
  BucketIndex find(ObjectIndex object, BlockNumber number) const {
    return static_cast<BucketIndex>(
        hash_.find(position_of(object, number),
                   [&](std::uint32_t index) { return descriptors_[index].holds(object, number); }));
  }

  // Publishes `bucket` as the place of its block unless the block has one already.
  // Requires: the bucket's descriptor names the block and is locked by the caller. Returns the
  // bucket that holds the block now: `bucket` itself, another, or kNone when the directory is full.
  BucketIndex publish(BucketIndex bucket, Owner self, const OwnerTable& owners);

  // The block of `from` lives in `to` from now on. Requires: both descriptors name it and are
  // locked by the caller.
  bool move(BucketIndex from, BucketIndex to, Owner self, const OwnerTable& owners);

  template <typename Visit>
  void for_each_line_lock(Visit&& visit) const {
    hash_.for_each_lock(visit);
  }

  // The block of `bucket` is resident no more. Requires: the descriptor is locked by the caller and
  // still names it.
  bool withdraw(BucketIndex bucket, Owner self, const OwnerTable& owners);

 private:
  static HashPosition position_of(ObjectIndex object, BlockNumber number) {
    const std::uint64_t group = static_cast<std::uint64_t>(raw(object)) << 32 | raw(number) >> 2;
    const std::uint64_t hash = mix_bits(group);
    const auto tag = static_cast<std::uint32_t>(hash >> 32) ^ ((raw(number) & 3) * 0x9e3779b1U);
    return HashPosition{hash & 0xffffffffU, tag};
  }

  HashLines hash_;
  BlockDescriptor* descriptors_ = nullptr;
};

}  // namespace cairn
