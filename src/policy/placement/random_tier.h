// SPDX-License-Identifier: Apache-2.0
// Placement at random: each of the tiers that have room is as likely as the others. The chance
// follows from request.sequence (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014), so
// that equal requests get equal answers.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_policy.h"
#include "policy/placement/rotation.h"

namespace cairn {

class RandomTier final : public PlacementPolicy {
 public:
  const char* name() const override { return "random"; }
  Placement solve(std::span<const TierView> tiers, const PlacementRequest& request) const override {
    return place_in_turn(tiers, request, scattered(request.sequence));
  }
  PlanOrder plan_order() const override { return PlanOrder::kPerBlock; }

 private:
  static constexpr std::uint64_t scattered(std::uint64_t sequence) {
    std::uint64_t bits = (sequence + 1) * 0x9E3779B97F4A7C15ull;
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9ull;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBull;
    return bits ^ (bits >> 31);
  }
};

}  // namespace cairn
