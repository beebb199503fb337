// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/hot_data.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr double kMoved = 1.0 / 2;
constexpr double kTimeOfPlacing = 1.0 / 8;
constexpr double kTimeOfMoving = 1.0 / 16;

}  // namespace

PlacementProblem HotData::problem(std::span<const TierView> tiers,
                                  const PlacementRequest& request) {
  PlacementProblem problem = problem_of(tiers, request);
  const double hotness = request.unit.hotness;
  const double bytes = static_cast<double>(std::max<std::uint64_t>(request.bytes, 1));
  const double share = move_share_of(request);
  double slowest = 0;
  for (const TierView& view : tiers) slowest = std::max(slowest, seconds_per_byte(view.bandwidth));

  const std::span<const TierView> allowed = tiers.last(
      static_cast<std::size_t>(std::count_if(tiers.begin(), tiers.end(), [&](const TierView& view) {
        return view.id >= request.fastest;
      })));
  // Too cold for all of them: the slowest.
  std::size_t home = problem.count == 0 ? 0 : problem.count - 1;
  for (std::size_t at = problem.count; at-- > 0;) {
    if (hotness >= allowed[at].hotness_min) home = at;
  }
  for (std::size_t at = 0; at < problem.count; ++at) {
    SolverTier& tier = problem.tiers[at];
    const double minimum = allowed[at].hotness_min;
    const double time = seconds_per_byte(allowed[at].bandwidth) / std::max(slowest, 1e-300);
    const double misplaced =
        static_cast<double>(at >= home ? at - home : problem.count + (home - at));
    const std::uint64_t own = request.unit.resident_bytes[raw(tier.id) % kTiersMax];
    tier.movable_bytes -= std::min(own, tier.movable_bytes);
    if (!(minimum > 0 && hotness >= minimum)) tier.movable_bytes = 0;
    tier.place.per_byte = (misplaced + time * kTimeOfPlacing) / bytes;
    tier.move.per_byte = (kMoved + time * kTimeOfMoving * share) / bytes;
  }
  problem.store.per_byte = 4 * kTiersMax / bytes;
  return problem;
}

Placement HotData::solve(std::span<const TierView> tiers, const PlacementRequest& request) const {
  return solve_placement(problem(tiers, request));
}

void hotness_thresholds(std::span<HotUnit> units, std::span<TierView> tiers) {
  std::sort(units.begin(), units.end(), [](const HotUnit& one, const HotUnit& other) {
    return one.hotness != other.hotness ? one.hotness > other.hotness : one.bytes < other.bytes;
  });
  std::size_t next = 0;
  std::uint64_t left = units.empty() ? 0 : units[0].bytes;  // of units[next]
  bool is_homeless = true;                                  // so is units[next]
  for (TierView& tier : tiers) {
    const std::uint64_t all =
        tier.capacity_bytes - std::min(tier.reserve_bytes, tier.capacity_bytes);
    std::uint64_t room = all;
    while (next < units.size() && left <= room) {
      if (is_homeless) units[next].home = tier.id;
      is_homeless = true;
      room -= left;
      ++next;
      left = next < units.size() ? units[next].bytes : 0;
    }
    tier.hotness_min = next < units.size() ? units[next].hotness : 0;
    // Nothing belongs into a tier that holds nothing, but asking for it does no harm.
    if (all == 0 || next == units.size()) continue;
    if (is_homeless && room < all / 2) continue;
    if (is_homeless) units[next].home = tier.id;
    is_homeless = false;
    left -= room;
  }
  for (std::size_t rest = next + (is_homeless ? 0 : 1); rest < units.size(); ++rest)
    units[rest].home = tiers.empty() ? TierId{} : tiers.back().id;
}

}  // namespace cairn
