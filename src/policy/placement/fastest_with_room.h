// SPDX-License-Identifier: Apache-2.0
// Placement: the fastest tier that has room beyond its reserve.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_policy.h"

namespace cairn {

class FastestWithRoom final : public PlacementPolicy {
 public:
  const char* name() const override { return "fastest-with-room"; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override;
  PlanOrder plan_order() const override { return PlanOrder::kPerBlock; }
};

}  // namespace cairn
