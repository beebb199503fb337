// SPDX-License-Identifier: Apache-2.0
// Where block i of object o is: a hash from (object, block number) to the bucket descriptor, over
// all tiers.
//
// Four neighbouring blocks share a home line, so a sequential reader finds the next three in a line
// it has already. Each of them has a slot of its own there, unless another group of four came
// first. Sixteen neighbouring lines follow one another, so that a large file's part of the
// directory lies on few pages of memory: at random, the look-up's TLB miss costs as much as the
// data's.
//
// Thread safety: find() without a lock; publish(), move() and withdraw() lock one line.
#pragma once

#include "base/ids.h"
#include "memory/arena/owner.h"
#include "memory/arena/step_pause.h"
#include "memory/catalog/block.h"
#include "memory/catalog/hash_lines.h"

namespace cairn {

class BlockDirectory {
 public:
  BlockDirectory() = default;
  BlockDirectory(HashLines hash, BlockDescriptor* descriptors, std::uint32_t count)
      : hash_(hash), descriptors_(descriptors), count_(count) {}

  BlockDescriptor& at(BucketIndex index) const { return descriptors_[raw(index)]; }

  // Returns kNone when the block is not resident: never of a block that is only on its way from one
  // bucket to another. The answer may be stale at once: readers verify the descriptor by its
  // sequence, writers lock it and check that it still holds the block, and look again if it does
  // not.
  template <typename Pause = NoPause>
  BucketIndex find(ObjectIndex object, BlockNumber number, const Pause& pause = Pause()) const {
    const std::uint64_t wanted = BlockDescriptor::identity_of(object, number);
    const HashPosition position = position_of(object, number);
    const std::uint32_t guessed = hash_.guess_by_tag(position);
    pause.at_step();
    if (__builtin_expect(is_at(guessed, wanted), 1)) return static_cast<BucketIndex>(guessed);
    return search(position, wanted, pause);
  }

  // Calls visit(object, number) for every block that is resident all the while, and for some of
  // those that come or go. A block keeps its slot however often it moves, so that none slips from a
  // place that is still to be looked at to one that has been.
  template <typename Visit>
  void for_each_block(Visit&& visit) const {
    hash_.for_each_slot([&](const std::atomic<std::uint64_t>& slot) {
      const std::uint64_t identity = identity_in(slot);
      if (identity != 0)
        visit(BlockDescriptor::object_in(identity), BlockDescriptor::number_in(identity));
    });
  }

  // Where the block is, most of the time; the caller compares the descriptor's identity. Few
  // instructions, because a processor overlaps the cache misses of two reads only when all that
  // lies between them fits its reorder buffer.
  BucketIndex guess(ObjectIndex object, BlockNumber number) const {
    return static_cast<BucketIndex>(hash_.guess(position_of(object, number)));
  }

  // Publishes `bucket` as the place of its block unless the block has one already.
  // Requires: the bucket's descriptor names the block and is locked by the caller. Returns the
  // bucket that holds the block now: `bucket` itself, another, or kNone when the directory is full.
  BucketIndex publish(BucketIndex bucket, Owner self, const OwnerTable& owners);

  // The block of `from` lives in `to` from now on. Requires: both descriptors name it and are
  // locked by the caller; `from` must go on naming it until this has returned.
  bool move(BucketIndex from, BucketIndex to, Owner self, const OwnerTable& owners);

  // For a successor of a dead service, which believes no word. Calls visit(bucket) for every bucket
  // that a slot names, with the slot. Slots that name none of the table's are emptied; returns how
  // many.
  template <typename IsUsed, typename Visit>
  std::uint32_t for_each_place(IsUsed&& is_used, Visit&& visit) const {
    std::uint32_t emptied = 0;
    hash_.for_each_used_line(is_used, [&](HashLine& line) {
      for (std::atomic<std::uint64_t>& slot : line.slots) {
        std::uint64_t seen = slot.load(std::memory_order_acquire);
        const auto bucket = static_cast<std::uint32_t>(seen);
        if (bucket != 0 && bucket < count_) {
          visit(static_cast<BucketIndex>(bucket), slot);
        } else if (seen != 0 && slot.compare_exchange_strong(seen, 0)) {
          ++emptied;
        }
      }
    });
    return emptied;
  }
  // Empties a slot of for_each_place() whose bucket is no place of a block with the slot's tag.
  // Requires: the lock of `bucket`, without which no block comes there or goes. Returns whether it
  // was so.
  bool empty_stray(BucketIndex bucket, std::atomic<std::uint64_t>& slot) const {
    std::uint64_t seen = slot.load(std::memory_order_acquire);
    const BlockDescriptor& block = at(bucket);
    const HashPosition position = position_of(block.object_index(), block.block_number());
    const bool is_its = block.object_index() != ObjectIndex::kNone && position.tag == seen >> 32;
    return static_cast<std::uint32_t>(seen) == raw(bucket) && !is_its &&
           slot.compare_exchange_strong(seen, 0);
  }

  // Calls visit(OwnedLock&) for the lines of all pages that is_used(address).
  template <typename IsUsed, typename Visit>
  void for_each_line_lock(IsUsed&& is_used, Visit&& visit) const {
    hash_.for_each_used_line(is_used, [&](HashLine& line) { visit(line.lock); });
  }

  // Whether a block comes while a caller does something without its lock: the block was in the
  // tiers at no moment between two searches that did not find it if this number, taken before the
  // first and after the second, is the same.
  std::uint16_t arrivals(ObjectIndex object, BlockNumber number) const {
    return hash_.arrivals(position_of(object, number));
  }

  // The caller has taken a lock over from a dead owner, which may have published or moved the
  // descriptor's block and not have counted that.
  void count_arrival(BucketIndex bucket) const {
    const BlockDescriptor& descriptor = at(bucket);
    hash_.count_arrival(position_of(descriptor.object_index(), descriptor.block_number()));
  }

  // The block of `bucket` is resident no more. Requires: the descriptor is locked by the caller and
  // still names it.
  bool withdraw(BucketIndex bucket, Owner self, const OwnerTable& owners);

 private:
  // Whether the bucket of any number is that of the block with this identity.
  bool is_at(std::uint32_t index, std::uint64_t identity) const {
    return index < count_ && descriptors_[index].identity() == identity;
  }
  template <typename Pause>
  [[gnu::noinline]] BucketIndex search(HashPosition position, std::uint64_t identity,
                                       const Pause& pause) const {
    return static_cast<BucketIndex>(hash_.find(position, [&](std::uint32_t index) {
      pause.at_step();
      return is_at(index, identity);
    }));
  }

  // Which block a slot stands for; 0 for none.
  std::uint64_t identity_in(const std::atomic<std::uint64_t>& slot) const {
    // A descriptor that denies the slot's block has lost it since the slot was read. Only rubbish
    // in the table goes on doing so.
    constexpr int kLooksMax = 1000;
    for (int look = 0; look < kLooksMax; ++look) {
      const std::uint64_t seen = slot.load(std::memory_order_acquire);
      if (static_cast<std::uint32_t>(seen) >= count_ || seen == 0) return 0;
      const std::uint64_t identity = descriptors_[static_cast<std::uint32_t>(seen)].identity();
      const HashPosition position =
          position_of(BlockDescriptor::object_in(identity), BlockDescriptor::number_in(identity));
      if (identity != 0 && position.tag == seen >> 32) return identity;
    }
    return 0;
  }

  static HashPosition position_of(ObjectIndex object, BlockNumber number) {
    // Multiplicative hashing (Knuth, TAOCP 3, 6.4): runs of one object and first runs of many
    // objects are both evenly spaced sequences, which it spreads better than chance.
    const std::uint32_t run = raw(number) / (kRunLines * kBlocksPerLine);
    const std::uint32_t line = raw(number) / kBlocksPerLine % kRunLines;
    const std::uint32_t member = raw(number) % kBlocksPerLine;
    const std::uint64_t hash = (raw(object) * 0x9e3779b97f4a7c15ULL + run) * 0xd6e8feb86659fd93ULL;
    const auto tag = static_cast<std::uint32_t>(hash) + raw(number);
    return HashPosition{(hash >> 32) + line, tag, member + static_cast<unsigned>(hash >> 62)};
  }

  static constexpr std::uint32_t kBlocksPerLine = 4;
  static constexpr std::uint32_t kRunLines = 16;

  HashLines hash_;
  BlockDescriptor* descriptors_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace cairn
