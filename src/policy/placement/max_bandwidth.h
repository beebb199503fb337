// SPDX-License-Identifier: Apache-2.0
// Placement that takes the request in the least time ("MaxBandwidth", equation 2 of the appendix of
// Hermes, JCST 35(1), 2020). The default.
//
// The options at each tier are to place, to skip, to split, and to make room first
// (policy/placement/placement_solver.h). Two members differ in what an access of s bytes costs:
//
//   max-bandwidth         A_i + s / BW_i    latency and transfer, in seconds
//   maxbw-paper           (s / BW_i) * A_i    as equation 2 prints it
//
// The printed form is dimensionally odd: seconds times seconds. It multiplies what adds up in time
// (a tier of half the latency would take a long transfer in half the time), and a tier whose
// latency is measured as 0 would take any number of bytes at once. It is kept for comparison with
// the paper's figures: `./dev bench placement` runs it, and no option names it.
//
// A_i is the measured latency, plus the time that the device still has to work for others
// (TierView::backlog).
//
// A move costs as much as writing the bytes to the tiers below, times request.move_share. At a
// share of 1 making room never wins: dividing the request writes the same bytes to the same tiers
// without writing them to the upper one as well. Below 1 (the organizer moves while the program
// computes) it wins as soon as the wait is shorter than the detour to the slower tier.
//
// Bytes that no tier takes cost the store's time, or, where that is unknown, more than any tier's.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_solver.h"

namespace cairn {

// The cost of an access, by the measured bandwidth (bytes per second) and latency (seconds).
using CostFunction = AccessCost (*)(double bandwidth, double latency);
AccessCost time_of_access(double bandwidth, double latency);
AccessCost paper_cost_of_access(double bandwidth, double latency);

class MaxBandwidth final : public PlacementPolicy {
 public:
  constexpr MaxBandwidth() = default;
  constexpr MaxBandwidth(const char* name, CostFunction cost) : name_(name), cost_(cost) {}

  const char* name() const override { return name_; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override;
  // The problem that solve() solves.
  PlacementProblem problem(std::span<const TierView> tiers, const PlacementRequest& request) const;

 private:
  const char* name_ = "max-bandwidth";
  CostFunction cost_ = time_of_access;
};

}  // namespace cairn
