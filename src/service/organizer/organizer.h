// SPDX-License-Identifier: Apache-2.0
// Keeps room in the tiers, from the runs that have more than their share
// (service/organizer/tier_shares.h): moves the blocks that the replacement policy names to the tier
// that the placement policy names, or drops them when they are clean and no tier below has room, or
// the replacement policy finds them not worth it. It never decides alone.
//
// Blocks of pinned files and parts stay where they are. How a block moves is in
// service/organizer/move_batch.h.
//
// Thread safety: one thread per Organizer; any number of clients at work.
// Ownership: borrows policies and writer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "policy/placement/placement_policy.h"
#include "policy/replacement/replacement_policy.h"
#include "service/organizer/move_batch.h"
#include "service/organizer/tier_shares.h"

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
  std::uint32_t left_memory = 0;       // of dropped and demoted, those from RAM
  bool is_short = false;               // still fewer free slabs than the low mark
  bool is_going_on = false;            // somebody is still at it: TierMovers
};

// A file that is to be in a faster tier than some of its blocks are.
struct RisingFile {
  ObjectIndex object{};
  TierId home{};
};

class Organizer {
 public:
  Organizer(const NodeMemory& memory, const PlacementPolicy& placement,
            const ReplacementPolicy& replacement, BatchWriter& writer,
            std::array<TierLimits, kTiersMax> limits);
  Organizer(const Organizer&) = delete;
  Organizer& operator=(const Organizer&) = delete;

  // Makes room in `tier` up to its high mark if it is below its low mark. `wanted`: slabs that
  // writers wait for; room is then made at least up to that, and all devices below take part at
  // once.
  RoomMade make_room(Actor& actor, TierId tier, std::uint32_t wanted = 0);

  // Moves blocks down until `slabs` of the tier are free, as far as tiers below have room: nothing
  // is dropped for it.
  RoomMade make_headroom(Actor& actor, TierId tier, std::uint32_t slabs);

  // Moves the blocks of these files that lie below their home up into it, the first file's first.
  // Room for them is what is free above the low mark, and what blocks leave that lie above their
  // own home. Returns how many moved.
  std::uint32_t raise(Actor& actor, std::span<const RisingFile> files);

 private:
  // A block that is to move up, of files[file].
  struct Rising {
    BucketIndex bucket{};
    std::uint32_t file = 0;
  };

  TierLimits limits_of(TierId tier) const;
  void announce(TierId tier, const TierUse& use, const TierLimits& limits) const;
  void collect(TierId tier, bool clean_only, TierUse* use);
  // Until so many slabs of `tier` are free for everybody.
  struct Goal {
    TierId tier{};
    std::uint32_t slabs = 0;
    bool may_drop = true;
    bool at_once = false;  // to the devices of all tiers below side by side
  };
  // Where the next victims go, so that neighbours lie together.
  struct Stretch {
    std::optional<TierId> target;
    std::uint32_t blocks_left = 0;
    BufferingMode mode{};
    AccountId account{};
  };
  RoomMade approach(Actor& actor, const Goal& goal);
  void evict_by_shares(Actor& actor, const Goal& goal, TierUse* use, bool clean_only,
                       RoomMade* made);
  void evict(Actor& actor, const Goal& goal, std::span<BlockView> candidates, RoomMade* made);
  bool handle_victim(Actor& actor, const BlockView& victim, const Goal& goal, RoomMade* made);
  bool is_turned_away(const BlockView& victim, TierId target, const Goal& goal) const;
  void collect_rising(std::span<const RisingFile> files);
  void lower(Actor& actor, TierId tier, std::size_t blocks);
  bool is_above_home(const BlockDescriptor& block, TierId tier) const;
  std::optional<TierId> target_for(const BlockView& victim, BufferingMode mode, const Goal& goal);
  std::vector<TierView> views(BufferingMode mode, AccountId account, bool at_once) const;

  const NodeMemory& memory_;
  const PlacementPolicy& placement_;
  const ReplacementPolicy& replacement_;
  const std::array<TierLimits, kTiersMax> limits_;
  std::array<std::int64_t, kTiersMax> strict_until_ns_{};
  // The bytes that each account has still to give in this round.
  std::array<std::uint64_t, kAccountsMax> bytes_to_give_{};
  std::vector<BlockView> candidates_;
  std::vector<Rising> rising_;
  Stretch stretch_;
  MoveBatch batch_;
};

}  // namespace cairn
