// SPDX-License-Identifier: Apache-2.0
// Between the values of a policy (policy/placement/placement_policy.h) and the C structures that a
// plugin sees (cairn/policy_plugin.h).
//
// Thread safety: no state.
#pragma once

#include <span>

#include "cairn/policy_plugin.h"
#include "policy/placement/placement_policy.h"

namespace cairn {

cairn_tier_view to_plugin(const TierView& tier);
cairn_placement_request to_plugin(const PlacementRequest& request);

// Nothing of a plugin's answer is taken for granted. Returns what cannot be told in our terms (a
// static text), null when all can; whether the steps can be carried out is another question.
const char* from_plugin(const cairn_placement& answer, Placement* placement);

}  // namespace cairn
