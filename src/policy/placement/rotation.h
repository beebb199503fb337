// SPDX-License-Identifier: Apache-2.0
// The part of placement without a model that round-robin and random share: one of the tiers with
// room takes all of the request; where none has that much room, the request is divided over them.
//
// Thread safety: no state.
#pragma once

#include "policy/placement/placement_policy.h"

namespace cairn {

// `turn` counts modulo the tiers that have room.
Placement place_in_turn(std::span<const TierView> tiers, const PlacementRequest& request,
                        std::uint64_t turn);

}  // namespace cairn
