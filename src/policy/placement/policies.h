// SPDX-License-Identifier: Apache-2.0
// The table of placement policies. A new policy is added here and nowhere else.
//
// Thread safety: constant data.
#pragma once

#include <array>
#include <string_view>

#include "policy/placement/fastest_with_room.h"
#include "policy/placement/hot_data.h"
#include "policy/placement/max_bandwidth.h"
#include "policy/placement/max_locality.h"
#include "policy/placement/random_tier.h"
#include "policy/placement/round_robin.h"

namespace cairn {

// The first is the default.
inline std::array<const PlacementPolicy*, 6> placement_policies() {
  static constexpr MaxBandwidth kMaxBandwidth{};
  static constexpr MaxLocality kMaxLocality{};
  static constexpr HotData kHotData{};
  static constexpr RoundRobin kRoundRobin{};
  static constexpr RandomTier kRandomTier{};
  static constexpr FastestWithRoom kFastestWithRoom{};
  return {&kMaxBandwidth, &kMaxLocality, &kHotData, &kRoundRobin, &kRandomTier, &kFastestWithRoom};
}

// Null when none has that name.
inline const PlacementPolicy* placement_policy_named(std::string_view name) {
  for (const PlacementPolicy* policy : placement_policies()) {
    if (name == policy->name()) return policy;
  }
  return nullptr;
}

}  // namespace cairn
