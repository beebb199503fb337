// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/placement_plan.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "policy/placement/placement_check.h"

namespace cairn {
namespace {

constexpr std::size_t kElements = PlacementPattern::kElements;
constexpr double kSpeedStep = 1.0 / 8;

bool is_known(const UnitView& unit) {
  return unit.bytes != 0 || std::any_of(unit.resident_bytes.begin(), unit.resident_bytes.end(),
                                        [](std::uint64_t bytes) { return bytes != 0; });
}

// One tier makes room once; what several decisions ask of it adds up.
void add_room(PlacementPlan& plan, const PlacementStep& step) {
  for (std::uint32_t at = 0; at < plan.room_count; ++at) {
    if (plan.rooms[at].tier != step.tier) continue;
    plan.rooms[at].bytes += step.bytes;
    return;
  }
  CAIRN_DCHECK(plan.room_count <= kTiersMax);
  if (plan.room_count < kTiersMax) plan.rooms[plan.room_count++] = step;
}

void add_rooms(PlacementPlan& plan, const Placement& placement) {
  for (const PlacementStep& step : placement.all()) {
    if (step.kind == PlacementStep::Kind::kMakeRoom) add_room(plan, step);
  }
}

// Element k stands for the byte in the middle of the k-th part of the window.
void lay_out(PlacementPlan& plan, const Placement& placement, std::uint64_t window_bytes) {
  std::array<std::uint64_t, kTiersMax> bytes_by_tier{};
  for (const PlacementStep& step : placement.all()) {
    if (step.kind == PlacementStep::Kind::kPlace) {
      bytes_by_tier[raw(step.tier) % kTiersMax] += step.bytes;
    }
  }
  CAIRN_DCHECK(window_bytes > 0);
  const double element = static_cast<double>(window_bytes) / kElements;
  std::size_t next = 0;
  double end = 0;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    end += static_cast<double>(bytes_by_tier[tier]);
    while (next < kElements && (static_cast<double>(next) + 0.5) * element < end) {
      plan.pattern.tiers[next++] = static_cast<TierId>(tier);
    }
  }
}

void decide_once(PlacementPlan& plan, const PlacementPolicy& policy,
                 std::span<const TierView> tiers, const PlacementRequest& window) {
  const Placement placement = policy.solve(tiers, window);
  add_rooms(plan, placement);
  lay_out(plan, placement, window.bytes);
  plan.unplaced_bytes = window.bytes - std::min(window.bytes, placement.placed_bytes());
}

// Element by element, each seeing the room that those before it left.
void decide_each(PlacementPlan& plan, const PlacementPolicy& policy, std::span<TierView> tiers,
                 const PlacementRequest& window) {
  PlacementRequest request = window;
  request.bytes = std::max<std::uint64_t>(window.bytes / kElements, 1);
  for (std::size_t element = 0; element < kElements; ++element) {
    const Placement placement = policy.solve(tiers, request);
    ++request.sequence;
    add_rooms(plan, placement);
    const auto steps = placement.all();
    const auto place = std::find_if(steps.begin(), steps.end(), [](const PlacementStep& step) {
      return step.kind == PlacementStep::Kind::kPlace;
    });
    plan.unplaced_bytes += request.bytes - std::min(request.bytes, placement.placed_bytes());
    if (place == steps.end()) continue;
    plan.pattern.tiers[element] = place->tier;
    carry_out(placement, request, tiers);
  }
}

bool differs(double then, double now) {
  return std::abs(now - then) > kSpeedStep * std::max(std::abs(then), std::abs(now));
}

}  // namespace

bool PlacementPlan::names(TierId tier) const {
  return std::find(pattern.tiers.begin(), pattern.tiers.end(), tier) != pattern.tiers.end();
}

PlacementPlan make_plan(const PlacementPolicy& policy, std::span<const TierView> tiers,
                        const PlacementRequest& window) {
  PlacementPlan plan;
  plan.tier_count = static_cast<std::uint32_t>(std::min<std::size_t>(tiers.size(), kTiersMax));
  std::copy_n(tiers.begin(), plan.tier_count, plan.tiers.begin());
  const std::span<const TierView> known(plan.tiers.data(), plan.tier_count);
  const auto fastest = std::find_if(
      known.begin(), known.end(), [&](const TierView& tier) { return tier.id >= window.fastest; });
  if (fastest != known.end()) plan.pattern.tiers.fill(fastest->id);
  if (fastest == known.end() || window.bytes == 0) return plan;

  plan.order = policy.plan_order();
  if (plan.order == PlanOrder::kPerUnit && is_known(window.unit)) plan.order = PlanOrder::kWindow;
  if (plan.order == PlanOrder::kWindow) {
    decide_once(plan, policy, known, window);
  } else {
    std::array<TierView, kTiersMax> left = plan.tiers;
    decide_each(plan, policy, {left.data(), plan.tier_count}, window);
  }
  return plan;
}

bool is_stale(const PlacementPlan& plan, std::span<const TierView> now, unsigned steps_per_tier) {
  if (now.size() != plan.tier_count) return true;
  for (std::size_t at = 0; at < now.size(); ++at) {
    const TierView& then = plan.tiers[at];
    const TierView& tier = now[at];
    if (tier.id != then.id || tier.capacity_bytes != then.capacity_bytes) return true;
    if (differs(then.bandwidth, tier.bandwidth) || differs(then.latency, tier.latency) ||
        differs(then.hotness_min, tier.hotness_min)) {
      return true;
    }
    const std::uint64_t before = then.usable_bytes();
    const std::uint64_t after = tier.usable_bytes();
    const std::uint64_t step =
        std::max<std::uint64_t>(tier.capacity_bytes / std::max(steps_per_tier, 1u), kBlockBytes);
    if ((before > after ? before - after : after - before) > step) return true;
    if (before >= kBlockBytes && after < kBlockBytes && plan.names(tier.id)) return true;
  }
  return false;
}

}  // namespace cairn
