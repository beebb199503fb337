// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/max_bandwidth.h"

#include "base/check.h"

namespace cairn {

AccessCost time_of_access(double bandwidth, double latency) {
  return {seconds_per_access(latency), seconds_per_byte(bandwidth)};
}

AccessCost paper_cost_of_access(double bandwidth, double latency) {
  return {0, seconds_per_byte(bandwidth) * seconds_per_access(latency)};
}

PlacementProblem MaxBandwidth::problem(std::span<const TierView> tiers,
                                       const PlacementRequest& request) const {
  PlacementProblem problem = problem_of(tiers, request);
  const double share = move_share_of(request);
  std::size_t at = 0;
  for (const TierView& view : tiers) {
    if (at == problem.count || view.id != problem.tiers[at].id) continue;
    SolverTier& tier = problem.tiers[at++];
    tier.place = cost_(view.bandwidth, view.latency + view.backlog);
    tier.move = {tier.place.fixed * share, tier.place.per_byte * share};
  }
  CAIRN_CHECK(at == problem.count);  // each tier has its costs
  problem.store = request.store_bandwidth > 0
                      ? cost_(request.store_bandwidth, request.store_latency)
                      : slower_than_any_tier(problem);
  return problem;
}

Placement MaxBandwidth::solve(std::span<const TierView> tiers,
                              const PlacementRequest& request) const {
  return solve_placement(problem(tiers, request));
}

}  // namespace cairn
