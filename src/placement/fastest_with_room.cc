// SPDX-License-Identifier: Apache-2.0
#include "placement/fastest_with_room.h"

namespace cairn {

std::optional<TierId> FastestWithRoom::choose(std::span<const TierView> tiers,
                                              const PlacementRequest& request) const {
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest) continue;
    const std::uint64_t usable =
        tier.free_bytes > tier.reserve_bytes ? tier.free_bytes - tier.reserve_bytes : 0;
    if (usable >= request.bytes) return tier.id;
  }
  return std::nullopt;
}

}  // namespace cairn
