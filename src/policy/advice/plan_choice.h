// SPDX-License-Identifier: Apache-2.0
// Which plans are worth a forecast, and the settings that go with a size.
//
// Thread safety: pure functions. Units: bytes.
#pragma once

#include <optional>
#include <vector>

#include "policy/advice/forecast.h"

namespace cairn::advice {

struct Wishes {
  std::vector<FileTierPlan> tiers;     // that may be used, fastest first
  std::vector<Plan> plans;             // to be compared with, such as the one in use
  std::optional<Plan> what_if;         // to be compared, too, and to be advised on
  std::optional<double> target_share;  // of the I/O time without Cairn
  FileTierPlan spare_tier;             // a device that one might buy
};

struct Sizes {
  std::optional<double> knee_bytes;  // none: nothing is used twice
  double hot_bytes = 0;
  double working_set_bytes = 0;
  // Only with a target; none within: no capacity reaches it.
  std::optional<double> target_bytes;
};

// The least memory that is proposed, where there is as much.
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
