// SPDX-License-Identifier: Apache-2.0
// Placement by hotness ("HotData", equation 4 of the appendix of Hermes, JCST 35(1), 2020): files
// that are read often per byte lie high, large and cold files lie low.
//
// Hotness is a density (accesses per second and MiB), so that filling the tiers by descending
// hotness serves the most accesses from the fastest bytes; that is the fractional knapsack. Tier i
// has a minimum hotness H_i (TierView::hotness_min), the hotness of the coldest file that belongs
// into it; 0 while there is no contention. The home of a unit is the fastest tier whose minimum it
// reaches. Promotion and demotion follow when the policy is applied again after the hotness
// changed.
//
// The cost, which Placement::seconds carries, is the misplaced share of the request's bytes:
//
//   k      per byte k tiers below its home
//   n + k  per byte k tiers above it, n being the number of tiers: only when nothing else has room
//   1/2    per byte that is moved down so that there is room in a tier with a minimum that the unit
//          reaches: something colder than it must be there. What lies in a tier without a minimum
//          is not known to be colder and stays.
//   1/8    at most, for time: bytes / bandwidth, normalised, decides among equals
//
// The store counts more than any tier.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_solver.h"

namespace cairn {

class HotData final : public PlacementPolicy {
 public:
  const char* name() const override { return "hot-data"; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override;
  // The problem that solve() solves.
  static PlacementProblem problem(std::span<const TierView> tiers, const PlacementRequest& request);
};

struct HotUnit {
  double hotness = 0;  // as UnitView::hotness
  std::uint64_t bytes = 0;
  std::uint32_t id = 0;  // the caller's
  TierId home{};         // result: the tier that it belongs into
};

// Fills each tier in turn with the hottest units, of equally hot ones the smallest, and sets where
// each of them belongs. A unit in which a tier ends belongs there if it is to have half of the tier
// or more, and below otherwise. hotness_min becomes the hotness of that unit, and 0 in the tiers
// where the units end. Sorts `units`.
void hotness_thresholds(std::span<HotUnit> units, std::span<TierView> tiers);

}  // namespace cairn
