// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/policy_conversion.h"

#include <cmath>

namespace cairn {

static_assert(CAIRN_POLICY_TIERS_MAX == kTiersMax);
static_assert(CAIRN_POLICY_STEPS_MAX == Placement::kStepsMax);
static_assert(CAIRN_PLACEMENT_MAKE_ROOM == static_cast<int>(PlacementStep::Kind::kMakeRoom));
static_assert(CAIRN_PLACEMENT_PLACE == static_cast<int>(PlacementStep::Kind::kPlace));
static_assert(CAIRN_PLAN_WINDOW == static_cast<int>(PlanOrder::kWindow));
static_assert(CAIRN_PLAN_PER_BLOCK == static_cast<int>(PlanOrder::kPerBlock));
static_assert(CAIRN_PLAN_PER_UNIT == static_cast<int>(PlanOrder::kPerUnit));

cairn_tier_view to_plugin(const TierView& tier) {
  cairn_tier_view view{};
  view.id = raw(tier.id);
  view.capacity_bytes = tier.capacity_bytes;
  view.free_bytes = tier.free_bytes;
  view.reserve_bytes = tier.reserve_bytes;
  view.bandwidth = tier.bandwidth;
  view.latency = tier.latency;
  view.hotness_min = tier.hotness_min;
  return view;
}

cairn_placement_request to_plugin(const PlacementRequest& request) {
  cairn_placement_request view{};
  view.bytes = request.bytes;
  view.fastest = raw(request.fastest);
  view.store_bandwidth = request.store_bandwidth;
  view.store_latency = request.store_latency;
  view.move_share = request.move_share;
  view.sequence = request.sequence;
  view.unit_bytes = request.unit.bytes;
  view.unit_hotness = request.unit.hotness;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    view.unit_resident_bytes[tier] = request.unit.resident_bytes[tier];
  }
  return view;
}

const char* from_plugin(const cairn_placement& answer, Placement* placement) {
  *placement = {};
  if (answer.count > CAIRN_POLICY_STEPS_MAX) return "has too many steps";
  for (std::uint32_t at = 0; at < answer.count; ++at) {
    const cairn_placement_step& step = answer.steps[at];
    if (step.tier >= kTiersMax) return "names a tier that does not exist";
    if (step.kind > CAIRN_PLACEMENT_PLACE) return "has a step of an unknown kind";
    placement->add(static_cast<PlacementStep::Kind>(step.kind), static_cast<TierId>(step.tier),
                   step.bytes);
  }
  placement->seconds = std::isfinite(answer.seconds) ? answer.seconds : 0;
  return nullptr;
}

}  // namespace cairn
