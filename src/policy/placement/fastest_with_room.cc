// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/fastest_with_room.h"

namespace cairn {

Placement FastestWithRoom::solve(std::span<const TierView> tiers,
                                 const PlacementRequest& request) const {
  Placement placement;
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest || tier.usable_bytes() < request.bytes) continue;
    placement.add(PlacementStep::Kind::kPlace, tier.id, request.bytes);
    placement.seconds = tier.latency + static_cast<double>(request.bytes) / tier.bandwidth;
    break;
  }
  return placement;
}

}  // namespace cairn
