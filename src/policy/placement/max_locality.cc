// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/max_locality.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr double kReorganize = 1.0 / 4;
constexpr double kStray = 1.0 / 16;
constexpr double kTime = kStray / 2;

std::uint64_t used_bytes(const TierView& tier) {
  return tier.capacity_bytes > tier.free_bytes ? tier.capacity_bytes - tier.free_bytes : 0;
}

std::uint64_t resident_bytes(const PlacementRequest& request, TierId tier) {
  return request.unit.resident_bytes[raw(tier) % kTiersMax];
}

// Where most of the unit is; the faster tier of equal ones.
std::optional<TierId> residence(std::span<const TierView> tiers, const PlacementRequest& request) {
  std::optional<TierId> most;
  std::uint64_t most_bytes = 0;
  for (const TierView& tier : tiers) {
    const std::uint64_t bytes = resident_bytes(request, tier.id);
    if (tier.id < request.fastest || bytes <= most_bytes) continue;
    most = tier.id;
    most_bytes = bytes;
  }
  return most;
}

// The fastest tier below its threshold that has room for `bytes`. A unit that is not there yet is
// counted with the bytes that it will have, so that empty tiers are below theirs.
std::optional<TierId> below_threshold(std::span<const TierView> tiers,
                                      const PlacementRequest& request, std::uint64_t bytes) {
  double capacity = 0;
  double used = static_cast<double>(bytes);
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest) continue;
    capacity += static_cast<double>(tier.capacity_bytes);
    used += static_cast<double>(used_bytes(tier));
  }
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest || tier.usable_bytes() < bytes) continue;
    const double share = static_cast<double>(tier.capacity_bytes) / std::max(capacity, 1.0);
    if (static_cast<double>(used_bytes(tier)) < share * used) return tier.id;
  }
  return std::nullopt;
}

std::optional<TierId> roomiest(std::span<const TierView> tiers, const PlacementRequest& request) {
  const TierView* most = nullptr;
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest) continue;
    if (most == nullptr || tier.usable_bytes() > most->usable_bytes()) most = &tier;
  }
  return most == nullptr ? std::nullopt : std::optional(most->id);
}

}  // namespace

std::optional<TierId> MaxLocality::home_of(std::span<const TierView> tiers,
                                           const PlacementRequest& request) {
  if (const auto home = residence(tiers, request)) return home;
  const std::uint64_t whole = std::max(request.unit.bytes, request.bytes);
  if (const auto home = below_threshold(tiers, request, whole)) return home;
  if (const auto home = below_threshold(tiers, request, request.bytes)) return home;
  return roomiest(tiers, request);
}

PlacementProblem MaxLocality::problem(std::span<const TierView> tiers,
                                      const PlacementRequest& request) {
  PlacementProblem problem = problem_of(tiers, request);
  const auto home = home_of(tiers, request);
  const double share = move_share_of(request);
  double slowest = 0;
  for (const TierView& view : tiers) slowest = std::max(slowest, seconds_per_byte(view.bandwidth));
  const double bytes = static_cast<double>(std::max<std::uint64_t>(request.bytes, 1));
  std::size_t at = 0;
  for (const TierView& view : tiers) {
    if (at == problem.count || view.id != problem.tiers[at].id) continue;
    SolverTier& tier = problem.tiers[at++];
    const std::uint64_t own = resident_bytes(request, view.id);
    const double time = seconds_per_byte(view.bandwidth) / std::max(slowest, 1e-300) / bytes;
    tier.movable_bytes -= std::min(own, tier.movable_bytes);
    tier.place.fixed = (own != 0 ? 0.0 : 1.0) + (view.id == home ? 0.0 : kStray);
    tier.place.per_byte = time * kTime;
    tier.move.per_byte = time * kTime * share;
  }
  problem.room_cost = kReorganize;
  // Each block in a tier instead of in the store is worth more than one more tier.
  problem.store = {4, 4 / std::min(bytes, static_cast<double>(kBlockBytes))};
  return problem;
}

Placement MaxLocality::solve(std::span<const TierView> tiers,
                             const PlacementRequest& request) const {
  return solve_placement(problem(tiers, request));
}

}  // namespace cairn
