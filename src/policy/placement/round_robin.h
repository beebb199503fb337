// SPDX-License-Identifier: Apache-2.0
// Placement in turn: each decision (request.sequence) takes the next of the tiers that have room.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_policy.h"
#include "policy/placement/rotation.h"

namespace cairn {

class RoundRobin final : public PlacementPolicy {
 public:
  const char* name() const override { return "round-robin"; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override {
    return place_in_turn(tiers, request, request.sequence);
  }
  PlanOrder plan_order() const override { return PlanOrder::kPerBlock; }
};

}  // namespace cairn
