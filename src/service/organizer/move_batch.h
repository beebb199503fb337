// SPDX-License-Identifier: Apache-2.0
// Blocks on their way to other tiers, many at once.
//
// How a block moves, so that neither a reader nor a writer waits for the device:
//   1. lock it, check that it is neither claimed nor empty, claim it, note its sequence, unlock;
//   2. copy its bytes to a free bucket of the other tier, many blocks in one device operation;
//   3. lock it again: unchanged, the directory points to the new bucket and the old one is free;
//      changed, the move is given up and the block stays where it was.
// A dirty block stays dirty where it arrives: it is marked there before the old mark goes (rule 3
// of the design).
//
// Two batches take turns: while the devices write one, the blocks of the next are chosen; and while
// one is looked at for its checksums on its way into memory, the next is read.
//
// The bytes in flight on a device are bounded by what it takes in kSecondsInFlight: enough to keep
// it busy, and soon over for the next caller. While programs read from the device only
// kBlocksBesideReads are in flight, because a read waits behind them. Then the device also rests
// after each batch for kRestsBesideReads times as long as the batch took, so that few reads meet
// one.
//
// Thread safety: one thread; any number of clients at work. Ownership: borrows memory and writer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/tiers/actor.h"
#include "memory/tiers/batch_writer.h"
#include "service/organizer/sum_checker.h"

namespace cairn {

class MoveBatch {
 public:
  static constexpr std::size_t kBlocksMax = 512;
  static constexpr double kSecondsInFlight = 0.01;
  static constexpr std::size_t kBlocksInFlightMin = 64;
  static constexpr std::size_t kBlocksBesideReads = 1;
  static constexpr int kRestsBesideReads = 5;
  // The shortest run of neighbours that the other thread compares with its checksums; the mover
  // itself compares shorter ones.
  static constexpr std::size_t kBlocksCheckedApart = 8;
  // The longest that is read and compared in one piece: of the last blocks of all, too, only a
  // piece is compared while nothing is read.
  static constexpr std::size_t kBlocksCheckedAtOnce = 128;

  MoveBatch(const NodeMemory& memory, BatchWriter& writer);
  ~MoveBatch();
  MoveBatch(const MoveBatch&) = delete;
  MoveBatch& operator=(const MoveBatch&) = delete;

  // Step 1. False when the block cannot move now. Requires: not full.
  bool add(Actor& actor, BucketIndex from, TierId target, PlacementReason reason);
  // The predictor that blocks are brought up for with kFetched, unless they have been fetched for
  // another one already and wait for their use.
  void set_fetched_by(std::uint8_t predictor) { fetched_by_ = predictor; }
  // Blocks that were added and have not moved yet.
  std::size_t size() const { return flights_[0].moves.size() + flights_[1].moves.size(); }
  // To be sent off before another block is added.
  bool is_full() const { return is_full_; }
  // Counts those that were added since the last advance().
  std::size_t blocks_to(TierId tier) const { return blocks_to_[raw(tier)]; }
  // Begins step 2 for the blocks that were added, and ends step 3 for those before them. Returns
  // how many have moved.
  std::uint32_t advance(Actor& actor);
  // Returns when no block is on its way any more, with how many have moved.
  std::uint32_t finish(Actor& actor);

 private:
  struct Move {
    ClaimedBlock claim;
    FreshBlock fresh;
    std::size_t length = 0;
    PlacementReason reason = PlacementReason::kDemoted;
    std::byte* bytes = nullptr;  // where they are in memory; null when they could not be carried
    std::uint16_t broken = 0;    // sealed pages in RAM that are not what they were

    BucketIndex from() const { return claim.bucket(); }
    BucketIndex to() const { return fresh.bucket(); }
  };

  std::size_t blocks_at_once(TierId tier) const;
  // Moves that are written together.
  struct Flight {
    std::vector<Move> moves;
    std::vector<iovec> parts;
    std::vector<BatchWrite> writes;
    std::vector<std::size_t> begins;  // of each write: its first move
    std::vector<SumCheck> checks;     // of what was read for moves into memory
    std::vector<iovec> checked;       // their parts
    std::byte* staging = nullptr;     // kBlocksMax blocks, for moves between file tiers
  };

  std::byte* staged(Flight& flight, std::size_t slot) const;
  void read_run(std::span<Move> run) const;
  bool fetch_run(Flight& flight, std::span<Move> run);
  void fetch(Flight& flight);
  std::uint32_t send(Actor& actor);
  void read_again(Flight& flight) const;
  void put(Flight& flight);
  std::uint32_t land(Actor& actor, Flight& flight);
  bool commit(Actor& actor, Move& move);
  void carry_mark(const Move& move, BucketIndex from, LockedBlock& block) const;

  const NodeMemory& memory_;
  BatchWriter& writer_;
  std::array<Flight, 2> flights_;
  SumChecker checker_;
  unsigned filling_ = 0;  // which of them takes blocks; the other one is on its way or empty
  std::array<std::size_t, kTiersMax> blocks_to_{};
  std::uint8_t fetched_by_ = 0;
  bool is_full_ = false;
  bool is_beside_reads_ = false;
};

}  // namespace cairn
