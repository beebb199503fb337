// SPDX-License-Identifier: Apache-2.0
// Keeps room in the tiers, from the runs that have more than their share (organizer/tier_shares.h):
// moves the blocks that the replacement policy names to the tier that the placement policy names,
// or drops them when they are clean and no tier below has room. It never decides alone.
//
// How a block moves, so that neither a reader nor a writer waits for the device:
//   1. lock it, check that it is neither flushed nor empty, pin it (`flusher`), note its sequence,
//      unlock;
//   2. write its bytes to a free bucket of the other tier, many blocks in one batch;
//   3. lock it again: unchanged, the directory points to the new bucket and the old one is free;
//      changed, the move is given up and the block stays where it was.
// Blocks of pinned files stay where they are. A dirty block stays dirty where it arrives: it is
// marked there before the old mark goes (rule 3 of the design).
//
// Thread safety: one thread per Organizer; any number of clients at work.
// Ownership: borrows policies and writer.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "organizer/tier_shares.h"
#include "placement/placement_policy.h"
#include "replacement/replacement_policy.h"
#include "tiers/actor.h"
#include "tiers/batch_writer.h"

namespace cairn {

// When a tier is short of room, and how much is made.
struct TierLimits {
  std::uint32_t low_slabs = 0;   // fewer free: start
  std::uint32_t high_slabs = 0;  // as many free: stop
};

// From percentages of the tier. Tiny tiers keep at least a few slabs; low < high < all.
TierLimits limits_for(std::uint32_t slabs, std::uint32_t low_percent, std::uint32_t high_percent);

struct RoomMade {
  std::uint32_t dropped = 0;
  std::uint32_t demoted = 0;
  std::uint32_t dirty_in_the_way = 0;  // blocks that can only leave once they are stored
  bool is_short = false;               // still fewer free slabs than the low mark
};

class Organizer {
 public:
  Organizer(const NodeMemory& memory, const PlacementPolicy& placement,
            const ReplacementPolicy& replacement, BatchWriter& writer,
            std::array<TierLimits, kTiersMax> limits);
  ~Organizer();
  Organizer(const Organizer&) = delete;
  Organizer& operator=(const Organizer&) = delete;

  // Makes room in `tier` up to its high mark if it is below its low mark.
  RoomMade make_room(Actor& actor, TierId tier);

  // Moves the blocks of an object that lie below `target` up into it, as far as it has room.
  // Returns how many.
  std::uint32_t raise(Actor& actor, ObjectIndex object, TierId target);

 private:
  // A block on its way to another tier.
  struct Move {
    BucketIndex from{};
    BucketIndex to{};
    std::uint32_t sequence = 0;
    std::size_t length = 0;
    PlacementReason reason = PlacementReason::kDemoted;
  };
  static constexpr std::size_t kMovesMax = 64;

  TierLimits limits_of(TierId tier) const;
  void announce(TierId tier, const TierUse& use, const TierLimits& limits) const;
  void evict_by_shares(Actor& actor, TierId tier, TierUse* use, std::uint32_t high, bool clean_only,
                       RoomMade* made);
  void collect(TierId tier, bool clean_only, TierUse* use);
  void evict(Actor& actor, TierId tier, std::span<BlockView> candidates, std::uint32_t enough,
             RoomMade* made);
  bool handle_victim(Actor& actor, const BlockView& victim, TierId tier, RoomMade* made);
  bool pin(Actor& actor, BucketIndex from, TierId target, PlacementReason reason);
  std::uint32_t finish_moves(Actor& actor);
  bool carry_up(const Move& move);
  bool commit(Actor& actor, const Move& move);
  void give_up(Actor& actor, const Move& move, bool target_too);
  bool drop(Actor& actor, BucketIndex bucket);
  std::vector<TierView> views(BufferingMode mode, AccountId account) const;
  const void* bytes_of(const Move& move, std::size_t slot);

  const NodeMemory& memory_;
  const PlacementPolicy& placement_;
  const ReplacementPolicy& replacement_;
  BatchWriter& writer_;
  const std::array<TierLimits, kTiersMax> limits_;
  std::array<std::int64_t, kTiersMax> strict_until_ns_{};
  // What each account has still to give in this round.
  std::array<std::uint64_t, kAccountsMax> bytes_to_give_{};
  std::vector<BlockView> candidates_;
  std::vector<Move> moves_;
  std::byte* staging_ = nullptr;  // kMovesMax blocks, for moves between file tiers
};

}  // namespace cairn
