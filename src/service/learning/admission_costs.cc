// SPDX-License-Identifier: Apache-2.0
#include "service/learning/admission_costs.h"

#include <algorithm>

#include "base/ids.h"

namespace cairn::node {
namespace {

// Flash bears a limited number of writes: each costs as much again.
constexpr double kFlashWear = 2;

double seconds_to_read(const profiler::TierFigures& figures) {
  return figures.read_latency + kBlockBytes / std::max(figures.read_bandwidth, 1.0);
}

}  // namespace

AdmissionCosts admission_costs(const profiler::TierFigures& store,
                               const profiler::TierFigures& tier) {
  using profiler::DeviceClass;
  const double here = seconds_to_read(tier);
  const bool is_flash =
      tier.device_class == DeviceClass::kNvme || tier.device_class == DeviceClass::kSsd;
  AdmissionCosts costs;
  costs.seconds_saved = std::max(seconds_to_read(store) - here, here);
  // Many at once (service/organizer/move_batch.h), so that the latency is of no account.
  costs.seconds_to_write =
      kBlockBytes / std::max(tier.write_bandwidth, 1.0) * (is_flash ? kFlashWear : 1);
  return costs;
}

}  // namespace cairn::node
