// SPDX-License-Identifier: Apache-2.0
// The tier to which a segment's heat entitles it: the placement of fetched data (Kougkas,
// Devarajan, Sun: JCST 35(1), 2020, algorithm 2).
//
// Each tier has a lowest and a highest score, those of the segments in it. A segment whose score
// changed is placed from the fastest tier on: it goes into the first tier that has room for it, or
// whose lowest score is below its own and that has room once colder segments have left. These are
// demoted, the coldest first and only as many as necessary: each is placed from the next tier on,
// where it may demote others in turn (the cascade). A segment that no tier takes stays in the
// backing store.
//
// The paper leaves some things open. Changed segments are placed the hottest first. Then each tier
// takes up the segments of the tiers below that it would admit, the hottest first: segments leave
// room behind when they cool down, and scores of different rates cross while they fade. Equal
// scores displace nothing. A segment is placed whole.
//
// So, for segments of one size, place() leaves none in a tier while a hotter one is in a tier below
// it, and no room in a tier while there is any segment below it.
//
// It only decides: values in, moves out; no clock and no I/O. A decision counts as done; relocate()
// reports where it was not. Scores are those of policy/heat/heat_score.h, times are in its steps.
//
// With D rates (policy/heat/heat_index.h) a changed segment takes O(D) for each tier that is full,
// and for each segment that it displaces: 100 changes among 160,000 segments of 300 rates in three
// full tiers took 6 ms. Memory: about 210 bytes for each segment that is in a tier.
//
// Thread safety: none. Ownership: keys and scores are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "policy/heat/heat_index.h"
#include "policy/heat/heat_score.h"
#include "policy/heat/segment_key.h"

namespace cairn {

struct ChangedSegment {
  SegmentKey key;
  FadingScore score;
  std::uint64_t bytes = 0;
};

// Nothing for a tier is the backing store.
struct HeatMove {
  SegmentKey key;
  std::uint64_t bytes = 0;
  std::optional<TierId> from;
  std::optional<TierId> to;

  // Whether it becomes faster; demoted if not.
  bool is_promotion() const { return to && (!from || raw(*to) < raw(*from)); }
  friend bool operator==(const HeatMove&, const HeatMove&) = default;
};

class TierHeat {
 public:
  // The tiers' bytes for what is placed by heat, fastest first: at most kTiersMax.
  explicit TierHeat(std::span<const std::uint64_t> capacities);

  // Places segments whose score or size changed. Returns: where what has to be, one move for each
  // segment, in this order: demotions, from the slowest tier up, and then promotions, the hottest
  // first. While they are carried out a tier may need room for promotions that are still to leave.
  std::vector<HeatMove> place(std::span<const ChangedSegment> changed, double time);

  // It is not in a tier any more, as when it was updated, evicted or closed. Returns: whether it
  // was.
  bool remove(SegmentKey key);
  std::size_t remove_object(ObjectIndex object);
  // A move came out differently: the segment is there. Requires of `tier`: one of the tiers.
  void relocate(SegmentKey key, std::optional<TierId> tier);
  // As tiers grow and shrink; what is too much leaves with the next place(). Same number of tiers.
  void set_capacities(std::span<const std::uint64_t> capacities);

  // The lowest logarithm of the segments in the tier; nothing while there are none.
  std::optional<double> minimum(TierId tier, double time) const;
  std::optional<double> maximum(TierId tier, double time) const;
  std::optional<TierId> tier_of(SegmentKey key) const;
  std::uint64_t used_bytes(TierId tier) const { return tiers_[raw(tier)].used_bytes; }
  std::size_t segment_count() const { return places_.size(); }

 private:
  struct Tier {
    std::uint64_t capacity_bytes = 0;
    std::uint64_t used_bytes = 0;
    HeatIndex index{SIZE_MAX};

    std::uint64_t free_bytes() const {
      return capacity_bytes > used_bytes ? capacity_bytes - used_bytes : 0;
    }
  };
  struct Place {
    std::size_t tier = 0;
    std::uint64_t bytes = 0;
    FadingScore score;
  };
  using Places = std::map<SegmentKey, Place>;
  // Where segments were before this call, for all that it touched.
  struct Origin {
    std::optional<std::size_t> tier;
    std::uint64_t bytes = 0;
  };
  using Origins = std::map<SegmentKey, Origin>;

  void settle(const ChangedSegment& segment, std::size_t fastest, double time, Origins* origins);
  // The segments that have to leave `tier` for this one: nothing if that would not make enough
  // room.
  std::optional<std::vector<SegmentKey>> displaced_by(const ChangedSegment& segment,
                                                      std::size_t tier, double time) const;
  void put(const ChangedSegment& segment, std::size_t tier, double time);
  ChangedSegment lift(Places::iterator at);
  ChangedSegment lift(SegmentKey key, Origins* origins);
  void shrink(std::size_t tier, double time, Origins* origins);
  void promote_into(std::size_t tier, double time, Origins* origins);
  // The hottest segment below `tier` that it admits, of the first few.
  std::optional<SegmentKey> entitled_to(std::size_t tier, double time) const;
  std::vector<HeatMove> moves_since(const Origins& origins, double time) const;

  std::vector<Tier> tiers_;
  Places places_;
};

}  // namespace cairn
