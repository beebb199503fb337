// SPDX-License-Identifier: Apache-2.0
// A plan: one decision of a policy, laid out so that placing a block costs a load. The service
// makes it for a window of bytes to come, clients follow it, and it is made anew when the tiers
// have changed by more than a step; no client runs a policy.
//
// The pattern is a cycle of 64 tier ids, one cache line. What an element stands for depends on the
// policy's PlanOrder:
//   kWindow    a 64th of the window, fastest tier first: elements are taken in order
//   kPerBlock  a block: elements are taken in order
//   kPerUnit   a dispersion unit: all its blocks take the element of the unit's number
// An element says where to try first. Its tier may have filled up since; the client then tries the
// tiers below. Where nothing has room, elements name the fastest allowed tier, whose room is made
// first.
//
// Thread safety: values; the caller that shares a plan publishes it safely. Plain bytes, so that it
// can lie in shared memory.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "policy/placement/placement_policy.h"

namespace cairn {

struct alignas(64) PlacementPattern {
  static constexpr std::size_t kElements = 64;
  std::array<TierId, kElements> tiers{};

  // `number`: of the block, counted by who places them (kWindow, kPerBlock), or of the unit.
  TierId at(std::uint64_t number) const { return tiers[number % kElements]; }
};
static_assert(sizeof(PlacementPattern) == 64);

struct PlacementPlan {
  PlacementPattern pattern;
  PlanOrder order = PlanOrder::kWindow;
  // The room that the policy would make first, lowest tier first: for the organizer.
  std::array<PlacementStep, kTiersMax> rooms{};
  std::uint32_t room_count = 0;
  std::uint64_t unplaced_bytes = 0;  // of the window
  // What it was made from.
  std::array<TierView, kTiersMax> tiers{};
  std::uint32_t tier_count = 0;

  std::span<const PlacementStep> rooms_to_make() const { return {rooms.data(), room_count}; }
  bool names(TierId tier) const;
};
static_assert(std::is_trivially_copyable_v<PlacementPlan>);

// The plan for window.bytes, of which each element stands for a 64th. window.unit is the unit that
// all of it belongs to, if it is known: a policy of units then decides about this one alone.
PlacementPlan make_plan(const PlacementPolicy& policy, std::span<const TierView> tiers,
                        const PlacementRequest& window);

// A window of one block per element.
inline constexpr std::uint64_t kPlanWindowBytes = PlacementPattern::kElements * kBlockBytes;
// A step is this part of a tier's capacity, and at least a block.
inline constexpr unsigned kPlanStepsPerTier = 64;

// Whether the tiers differ from those of the plan by more than a step of room, an eighth of
// measured speed or minimum hotness, or in what tiers there are. A tier that the plan names and
// that has no room for a block any more makes it stale at once; one that has none keeps it until it
// has a step.
bool is_stale(const PlacementPlan& plan, std::span<const TierView> now,
              unsigned steps_per_tier = kPlanStepsPerTier);

}  // namespace cairn
