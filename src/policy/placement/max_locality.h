// SPDX-License-Identifier: Apache-2.0
// Placement that keeps the pieces of a dispersion unit (request.unit: a file, a region of a shared
// file) in as few tiers as possible, while all tiers are in use at once ("MaxLocality", equation 3
// of the appendix of Hermes, JCST 35(1), 2020).
//
// A unit has a home tier. One that is in the tiers already stays where most of its bytes are. A new
// one goes to the fastest tier below its threshold: with capacities C_i, tier i may hold the share
// R_i = C_i / sum(C) of all buffered bytes, so that the tiers fill in proportion and at once. (The
// paper counts units; bytes also hold for units of different sizes.)
//
// The cost, which Placement::seconds carries, is the degree of dispersion d that the request adds:
//
//   1      for each tier that the unit was not in and gets pieces in
//   1/4    for each making of room (the paper's ReOrganize): dearer than any tier that the unit is
//          in, cheaper than one that it is not in; the unit's own bytes are not moved for it
//   1/16   for each tier besides the home
//   1/32   at most, for time: bytes / bandwidth, normalised, decides among what is otherwise equal
//
// A new unit whose home is full moves on to another tier; one that outgrows its home has room made
// there as long as something else is in it, and is dispersed only then. The store counts more than
// all tiers together.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_solver.h"

namespace cairn {

class MaxLocality final : public PlacementPolicy {
 public:
  const char* name() const override { return "max-locality"; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override;
  PlanOrder plan_order() const override { return PlanOrder::kPerUnit; }
  // The problem that solve() solves.
  static PlacementProblem problem(std::span<const TierView> tiers, const PlacementRequest& request);
  // Nothing when no tier is at or below request.fastest.
  static std::optional<TierId> home_of(std::span<const TierView> tiers,
                                       const PlacementRequest& request);
};

}  // namespace cairn
