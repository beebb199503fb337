// SPDX-License-Identifier: Apache-2.0
// Placement without a model, as far as it is the same for round-robin and random: one of the tiers
// with room takes all of the request; where none has that much room, it is divided over them.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_policy.h"

namespace cairn {

// `turn` counts modulo the tiers that have room.
Placement place_in_turn(std::span<const TierView> tiers, const PlacementRequest& request,
                        std::uint64_t turn);

}  // namespace cairn
