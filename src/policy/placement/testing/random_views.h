// SPDX-License-Identifier: Apache-2.0
// Random tiers and requests for the tests of placement: small, so that everything can be tried, and
// often degenerate (no room, no capacity, equal speeds, a reserve that is not met).
//
// Thread safety: one thread.
#pragma once

#include <random>
#include <vector>

#include "policy/placement/placement_policy.h"

namespace cairn::testing {

class RandomViews {
 public:
  explicit RandomViews(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t limit) { return static_cast<std::uint32_t>(random_()) % limit; }

  // Sizes are multiples of a block; speeds mostly but not always descend.
  std::vector<TierView> tiers(unsigned count_max, unsigned blocks_max) {
    std::vector<TierView> tiers;
    const unsigned count = below(count_max + 1);
    const bool is_uniform = below(4) == 0;
    double bandwidth = 8e9;
    for (unsigned id = 0; id < count; ++id) {
      TierView tier;
      tier.id = static_cast<TierId>(id);
      tier.capacity_bytes = below(blocks_max + 1) * kBlockBytes;
      tier.free_bytes =
          below(static_cast<unsigned>(tier.capacity_bytes / kBlockBytes) + 1) * kBlockBytes;
      tier.reserve_bytes = below(3) == 0 ? below(blocks_max / 2 + 1) * kBlockBytes : 0;
      if (!is_uniform) bandwidth /= 0.5 + below(8);
      tier.bandwidth = bandwidth;
      tier.latency = below(4) == 0 ? 0 : 1e-7 * (1 + below(2000));
      tier.backlog = below(2) == 0 ? 0 : 1e-6 * below(1000);
      tier.hotness_min = below(2) == 0 ? 0 : static_cast<double>(4 * (count - id));
      tiers.push_back(tier);
    }
    return tiers;
  }

  PlacementRequest request(const std::vector<TierView>& tiers, std::uint64_t bytes) {
    PlacementRequest request;
    request.bytes = bytes;
    request.fastest = static_cast<TierId>(below(4) == 0 ? below(5) : 0);
    request.sequence = random_();
    request.move_share = below(3) / 2.0;
    request.unit.hotness = below(20);
    request.unit.bytes = below(2) == 0 ? 0 : below(64) * kBlockBytes;
    for (const TierView& tier : tiers) {
      const auto used =
          static_cast<std::uint32_t>((tier.capacity_bytes - tier.free_bytes) / kBlockBytes);
      if (below(3) == 0) {
        request.unit.resident_bytes[raw(tier.id)] = below(used + 1) * kBlockBytes;
      }
    }
    return request;
  }

 private:
  std::mt19937 random_;
};

}  // namespace cairn::testing
