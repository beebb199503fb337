// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/tier_heat.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "base/check.h"

namespace cairn {
namespace {

// A tier counts as full after it had no use for so many of the hottest segments below it.
constexpr unsigned kMisfitsMax = 64;

std::optional<TierId> tier_at(const std::optional<std::size_t>& position) {
  if (!position) return std::nullopt;
  return static_cast<TierId>(*position);
}

// The backing store lies below all tiers.
std::uint32_t depth_of(const std::optional<TierId>& tier) {
  return tier ? raw(*tier) : std::uint32_t{kTiersMax};
}

// The last word on each segment, the hottest first; equal ones by key, so that the outcome does
// not depend on the order in which they were reported.
std::vector<ChangedSegment> by_heat(std::span<const ChangedSegment> changed, double time) {
  std::map<SegmentKey, ChangedSegment> last;
  for (const ChangedSegment& segment : changed) last.insert_or_assign(segment.key, segment);
  std::vector<ChangedSegment> ordered;
  ordered.reserve(last.size());
  for (const auto& [key, segment] : last) ordered.push_back(segment);
  std::ranges::sort(ordered, [time](const ChangedSegment& one, const ChangedSegment& other) {
    return std::pair(other.score.logarithm_at(time), one.key) <
           std::pair(one.score.logarithm_at(time), other.key);
  });
  return ordered;
}

}  // namespace

TierHeat::TierHeat(std::span<const std::uint64_t> capacities) {
  CAIRN_CHECK(capacities.size() <= kTiersMax);
  tiers_.reserve(capacities.size());
  for (const std::uint64_t capacity : capacities) tiers_.emplace_back().capacity_bytes = capacity;
}

std::vector<HeatMove> TierHeat::place(std::span<const ChangedSegment> changed, double time) {
  Origins origins;
  const std::vector<ChangedSegment> ordered = by_heat(changed, time);
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) shrink(tier, time, &origins);
  // None of them is to be in the way of another with the score that it had.
  for (const ChangedSegment& segment : ordered) (void)lift(segment.key, &origins);
  for (const ChangedSegment& segment : ordered) settle(segment, 0, time, &origins);
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier) promote_into(tier, time, &origins);
  return moves_since(origins, time);
}

void TierHeat::settle(const ChangedSegment& segment, std::size_t fastest, double time,
                      Origins* origins) {
  // A segment that nobody uses, or that has no bytes, is not worth a tier.
  if (segment.bytes == 0 || !(segment.score.level > -std::numeric_limits<double>::infinity()))
    return;
  for (std::size_t tier = fastest; tier < tiers_.size(); ++tier) {
    const auto displaced = displaced_by(segment, tier, time);
    if (!displaced) continue;
    std::vector<ChangedSegment> demoted;
    demoted.reserve(displaced->size());
    for (const SegmentKey key : *displaced) demoted.push_back(lift(key, origins));
    put(segment, tier, time);
    // The hottest first: what it finds room for need not be displaced by it.
    for (auto it = demoted.rbegin(); it != demoted.rend(); ++it)
      settle(*it, tier + 1, time, origins);
    return;
  }
}

std::optional<std::vector<SegmentKey>> TierHeat::displaced_by(const ChangedSegment& segment,
                                                              std::size_t tier, double time) const {
  std::vector<SegmentKey> displaced;
  const Tier& candidate = tiers_[tier];
  std::uint64_t room = candidate.free_bytes();
  if (room >= segment.bytes) return displaced;
  if (candidate.capacity_bytes < segment.bytes) return std::nullopt;
  const double logarithm = segment.score.logarithm_at(time);
  HeatIndex::Walk walk = candidate.index.walk(HeatIndex::Order::kColdestFirst, time);
  while (room < segment.bytes) {
    const auto coldest = walk.next();
    if (!coldest || !(coldest->logarithm < logarithm)) return std::nullopt;
    displaced.push_back(coldest->key);
    room += places_.at(coldest->key).bytes;
  }
  return displaced;
}

void TierHeat::put(const ChangedSegment& segment, std::size_t tier, double time) {
  places_[segment.key] = {tier, segment.bytes, segment.score};
  tiers_[tier].used_bytes += segment.bytes;
  (void)tiers_[tier].index.set(segment.key, segment.score, time);
}

ChangedSegment TierHeat::lift(Places::iterator at) {
  const auto& [key, place] = *at;
  const ChangedSegment segment{key, place.score, place.bytes};
  Tier& tier = tiers_[place.tier];
  CAIRN_CHECK(place.bytes <= tier.used_bytes);
  tier.used_bytes -= place.bytes;
  tier.index.remove(key);
  places_.erase(at);
  return segment;
}

// Notes where it was before the first move of it.
ChangedSegment TierHeat::lift(SegmentKey key, Origins* origins) {
  const auto at = places_.find(key);
  if (at == places_.end()) {
    origins->try_emplace(key);
    return {key, {}, 0};
  }
  origins->try_emplace(key, Origin{at->second.tier, at->second.bytes});
  return lift(at);
}

// A tier that lost capacity, or that relocate() overfilled.
void TierHeat::shrink(std::size_t tier, double time, Origins* origins) {
  Tier& shrunk = tiers_[tier];
  while (shrunk.used_bytes > shrunk.capacity_bytes) {
    const auto coldest = shrunk.index.walk(HeatIndex::Order::kColdestFirst, time).next();
    CAIRN_CHECK(coldest.has_value());  // whatever uses room is in the index
    settle(lift(coldest->key, origins), tier + 1, time, origins);
  }
}

// Each segment that moves up makes the tier's scores, in descending order, greater than they were,
// and changes no tier above: this ends.
void TierHeat::promote_into(std::size_t tier, double time, Origins* origins) {
  while (const auto key = entitled_to(tier, time)) settle(lift(*key, origins), tier, time, origins);
}

std::optional<SegmentKey> TierHeat::entitled_to(std::size_t tier, double time) const {
  std::vector<HeatIndex::Walk> walks;
  std::vector<std::optional<RankedSegment>> heads;
  for (std::size_t below = tier + 1; below < tiers_.size(); ++below) {
    walks.push_back(tiers_[below].index.walk(HeatIndex::Order::kHottestFirst, time));
    heads.push_back(walks.back().next());
  }
  for (unsigned misfits = 0; misfits < kMisfitsMax; ++misfits) {
    std::size_t hottest = heads.size();
    for (std::size_t at = 0; at < heads.size(); ++at) {
      if (!heads[at]) continue;
      if (hottest == heads.size() || heads[at]->logarithm > heads[hottest]->logarithm) hottest = at;
    }
    if (hottest == heads.size()) break;
    const SegmentKey key = heads[hottest]->key;
    const Place& place = places_.at(key);
    if (displaced_by({key, place.score, place.bytes}, tier, time)) return key;
    heads[hottest] = walks[hottest].next();
  }
  return std::nullopt;
}

std::vector<HeatMove> TierHeat::moves_since(const Origins& origins, double time) const {
  struct Ranked {
    HeatMove move;
    double logarithm;
  };
  std::vector<Ranked> ranked;
  for (const auto& [key, origin] : origins) {
    const auto at = places_.find(key);
    if (at == places_.end()) {
      if (origin.tier) ranked.push_back({{key, origin.bytes, tier_at(origin.tier), {}}, 0});
    } else if (origin.tier != at->second.tier) {
      const Place& place = at->second;
      ranked.push_back({{key, place.bytes, tier_at(origin.tier), tier_at(place.tier)},
                        place.score.logarithm_at(time)});
    }
  }
  std::ranges::sort(ranked, [](const Ranked& one, const Ranked& other) {
    if (one.move.is_promotion() != other.move.is_promotion()) return other.move.is_promotion();
    if (one.move.is_promotion() && one.logarithm != other.logarithm)
      return one.logarithm > other.logarithm;
    if (one.move.from != other.move.from && !one.move.is_promotion())
      return depth_of(one.move.from) > depth_of(other.move.from);
    return one.move.key < other.move.key;
  });
  std::vector<HeatMove> moves;
  moves.reserve(ranked.size());
  for (const Ranked& one : ranked) moves.push_back(one.move);
  return moves;
}

bool TierHeat::remove(SegmentKey key) {
  const auto at = places_.find(key);
  if (at == places_.end()) return false;
  (void)lift(at);
  return true;
}

std::size_t TierHeat::remove_object(ObjectIndex object) {
  std::size_t count = 0;
  for (auto at = places_.lower_bound({object, 0});
       at != places_.end() && at->first.object == object; ++count) {
    const auto next = std::next(at);
    (void)lift(at);
    at = next;
  }
  return count;
}

void TierHeat::relocate(SegmentKey key, std::optional<TierId> tier) {
  const auto at = places_.find(key);
  if (at == places_.end()) return;
  const ChangedSegment segment = lift(at);
  // Only the order at one time would need that time, and nothing is ever too much here.
  if (tier) put(segment, raw(*tier), 0);
}

void TierHeat::set_capacities(std::span<const std::uint64_t> capacities) {
  CAIRN_CHECK(capacities.size() == tiers_.size());
  for (std::size_t tier = 0; tier < tiers_.size(); ++tier)
    tiers_[tier].capacity_bytes = capacities[tier];
}

std::optional<TierId> TierHeat::tier_of(SegmentKey key) const {
  const auto at = places_.find(key);
  if (at == places_.end()) return std::nullopt;
  return static_cast<TierId>(at->second.tier);
}

std::optional<double> TierHeat::minimum(TierId tier, double time) const {
  const auto coldest = tiers_[raw(tier)].index.walk(HeatIndex::Order::kColdestFirst, time).next();
  if (!coldest) return std::nullopt;
  return coldest->logarithm;
}

std::optional<double> TierHeat::maximum(TierId tier, double time) const {
  const auto hottest = tiers_[raw(tier)].index.walk(HeatIndex::Order::kHottestFirst, time).next();
  if (!hottest) return std::nullopt;
  return hottest->logarithm;
}

}  // namespace cairn
