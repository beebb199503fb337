// SPDX-License-Identifier: Apache-2.0
// Blocks on their way to other tiers, many at once.
//
// How a block moves, so that neither a reader nor a writer waits for the device:
//   1. lock it, check that it is neither flushed nor empty, pin it (`flusher`), note its sequence,
//      unlock;
//   2. copy its bytes to a free bucket of the other tier, many blocks in one device operation;
//   3. lock it again: unchanged, the directory points to the new bucket and the old one is free;
//      changed, the move is given up and the block stays where it was.
// A dirty block stays dirty where it arrives: it is marked there before the old mark goes (rule 3
// of the design).
//
// What is in flight on a device is bounded: kBlocksMax blocks, and only kBlocksBesideReads while
// programs read from that device, because a read waits behind what is in flight. Then the device
// also rests after each batch for kRestsBesideReads times as long as the batch took: of the reads,
// few meet one.
//
// Thread safety: one thread; any number of clients at work. Ownership: borrows memory and writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tiers/actor.h"
#include "tiers/batch_writer.h"

namespace cairn {

class MoveBatch {
 public:
  static constexpr std::size_t kBlocksMax = 64;
  static constexpr std::size_t kBlocksBesideReads = 1;
  static constexpr int kRestsBesideReads = 5;

  MoveBatch(const NodeMemory& memory, BatchWriter& writer);
  ~MoveBatch();
  MoveBatch(const MoveBatch&) = delete;
  MoveBatch& operator=(const MoveBatch&) = delete;

  // Step 1. False when the block cannot move now. Requires: not full.
  bool add(Actor& actor, BucketIndex from, TierId target, PlacementReason reason);
  std::size_t size() const { return moves_.size(); }
  // To be finished before another block is added.
  bool is_full() const { return !moves_.empty() && moves_.size() >= limit_; }
  // Steps 2 and 3 for all blocks that were added. Returns how many have moved.
  std::uint32_t finish(Actor& actor);

 private:
  struct Move {
    BucketIndex from{};
    BucketIndex to{};
    std::uint32_t sequence = 0;
    std::size_t length = 0;
    PlacementReason reason = PlacementReason::kDemoted;
    std::byte* bytes = nullptr;  // where they are in memory; null when they could not be carried
  };

  std::size_t blocks_at_once(TierId tier) const;
  std::uint64_t offset_of(BucketIndex bucket) const;
  std::byte* staged(std::size_t slot);
  void read_run(std::size_t begin, std::size_t past);
  void fetch();
  void put();
  bool commit(Actor& actor, const Move& move);
  void give_up(Actor& actor, const Move& move);

  const NodeMemory& memory_;
  BatchWriter& writer_;
  std::vector<Move> moves_;
  std::size_t limit_ = kBlocksMax;
  std::byte* staging_ = nullptr;  // kBlocksMax blocks, for moves between file tiers
};

// Whether there is anything to carry: a block that is being filled has nothing yet.
bool has_bytes(const BlockDescriptor& block);
std::uint32_t bucket_bytes(const NodeMemory& memory, BucketIndex bucket);

}  // namespace cairn
