// SPDX-License-Identifier: Apache-2.0
// Whether a decision can be carried out: the rules that every policy keeps. The service checks the
// answers of a plugin by them before it believes them.
//
// Thread safety: no state. No allocation.
#pragma once

#include <span>

#include "policy/placement/placement_policy.h"

namespace cairn {

// Carries the steps out on the views: free bytes go down where something is placed, and what is
// moved goes to the fastest room below. Returns what is wrong with the first step that cannot be
// carried out (a static text), with the views as the steps before it left them; null when all can.
// Requires: no more than kTiersMax tiers.
const char* carry_out(const Placement& placement, const PlacementRequest& request,
                      std::span<TierView> tiers);

// The same without changing anything.
const char* fault_in(const Placement& placement, const PlacementRequest& request,
                     std::span<const TierView> tiers);

}  // namespace cairn
