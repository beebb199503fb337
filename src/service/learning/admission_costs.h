// SPDX-License-Identifier: Apache-2.0
// What a block in a tier saves and costs (policy/replacement/admission.h), from what was measured
// of the devices, or what their classes let expect (service/profiler/tier_figures.h).
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <vector>

#include "policy/replacement/admission.h"
#include "service/profiler/tier_figures.h"

namespace cairn::node {

// A tier that is configured above the backing store is taken for twice as fast at least: the
// kernel's cache may make the store look better than it is.
AdmissionCosts admission_costs(const profiler::TierFigures& store,
                               const profiler::TierFigures& tier);

// The figures of the device of the first buffered directory; without one, of an unknown device.
profiler::TierFigures store_figures(const std::vector<std::string>& buffer_directories);

}  // namespace cairn::node
