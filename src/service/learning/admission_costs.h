// SPDX-License-Identifier: Apache-2.0
// What a block in a tier saves and costs (policy/replacement/admission.h), from what was measured
// of the devices, or what their classes let expect (service/profiler/tier_figures.h).
//
// Thread safety: pure functions.
#pragma once

#include "policy/replacement/admission.h"
#include "service/profiler/tier_figures.h"

namespace cairn::node {

// A tier that is configured above the backing store is taken for twice as fast at least: the
// kernel's cache may make the store look better than it is.
AdmissionCosts admission_costs(const profiler::TierFigures& store,
                               const profiler::TierFigures& tier);

}  // namespace cairn::node
