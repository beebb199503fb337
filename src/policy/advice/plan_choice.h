// SPDX-License-Identifier: Apache-2.0
// Which plans are worth a forecast, and the settings that go with a size.
//
// Thread safety: pure functions. Units: bytes.
#pragma once

#include <vector>

#include "policy/advice/advice.h"

namespace cairn::advice {

// The memory and each tier as a node can have them.
inline constexpr double kRamBytesMin = 64.0 * (1 << 20);

// What a RAM tier must have so that so many bytes stay in it: some of a tier is always kept free.
double capacity_for(double bytes);

Sizes sizes_of(const Workload& work, const Machine& machine, const Wishes& wishes);

// Memory of each size from the least to the most that is useful, with the tiers that there are and
// without, one name each. At least one.
std::vector<Plan> plans_for(const Workload& work, const Machine& machine, const Wishes& wishes);

// Fills in policy, trigger, prefetching and level.
void choose_settings(const Workload& work, const Machine& machine, Plan* plan);

}  // namespace cairn::advice
