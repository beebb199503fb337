// SPDX-License-Identifier: Apache-2.0
#include "policy/placement/rotation.h"

#include <algorithm>

#include "base/check.h"
#include "policy/placement/placement_solver.h"

namespace cairn {
namespace {

double seconds_in(const TierView& tier, std::uint64_t bytes) {
  return seconds_per_access(tier.latency) +
         seconds_per_byte(tier.bandwidth) * static_cast<double>(bytes);
}

// Positions of the tiers that may take at least `bytes`.
struct Candidates {
  std::array<std::size_t, kTiersMax> positions{};
  std::size_t count = 0;

  Candidates(std::span<const TierView> tiers, const PlacementRequest& request,
             std::uint64_t bytes) {
    for (std::size_t at = 0; at < tiers.size() && count < kTiersMax; ++at) {
      if (tiers[at].id < request.fastest || tiers[at].usable_bytes() < bytes) continue;
      positions[count++] = at;
    }
  }
};

}  // namespace

Placement place_in_turn(std::span<const TierView> tiers, const PlacementRequest& request,
                        std::uint64_t turn) {
  Placement placement;
  if (request.bytes == 0) return placement;
  Candidates whole(tiers, request, request.bytes);
  if (whole.count != 0) {
    const TierView& tier = tiers[whole.positions[turn % whole.count]];
    placement.add(PlacementStep::Kind::kPlace, tier.id, request.bytes);
    placement.seconds = seconds_in(tier, request.bytes);
    return placement;
  }
  // No tier takes the last piece whole either, so each takes whole blocks.
  Candidates parts(tiers, request, kBlockBytes);
  std::uint64_t left = request.bytes;
  for (std::size_t step = 0; step < parts.count && left > 0; ++step) {
    const TierView& tier = tiers[parts.positions[(turn + step) % parts.count]];
    std::uint64_t bytes = std::min(left, tier.usable_bytes());
    if (bytes < left) bytes -= bytes % kBlockBytes;
    placement.add(PlacementStep::Kind::kPlace, tier.id, bytes);
    placement.seconds += seconds_in(tier, bytes);
    left -= bytes;
  }
  CAIRN_DCHECK(placement.placed_bytes() + left == request.bytes);
  return placement;
}

}  // namespace cairn
