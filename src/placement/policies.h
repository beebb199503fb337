// SPDX-License-Identifier: Apache-2.0
// The table of placement policies. A new policy is added here and nowhere else.
//
// Thread safety: constant data.
#pragma once

#include <array>

#include "placement/fastest_with_room.h"

namespace cairn {

// The first is the default.
inline std::array<const PlacementPolicy*, 1> placement_policies() {
  static const FastestWithRoom kFastestWithRoom;
  return {&kFastestWithRoom};
}

}  // namespace cairn
