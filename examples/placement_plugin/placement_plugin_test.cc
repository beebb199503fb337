// SPDX-License-Identifier: Apache-2.0
// The example plugin, loaded as the service loads it, decides what its comment says.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "policy/placement/placement_check.h"
#include "policy/placement/policies.h"
#include "service/plugins/plugin_policy.h"

namespace cairn {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TEST(ExamplePlugin, KeepsHalfOfTheFastestTierForSmallWrites) {
  std::vector<std::string> complaints;
  auto loaded =
      PluginPolicy::load(EXAMPLE_PLUGIN, *placement_policies()[0],
                         [&](const std::string& complaint) { complaints.push_back(complaint); });
  ASSERT_TRUE(loaded.is_ok()) << loaded.status().message();
  const PluginPolicy& policy = **loaded;
  EXPECT_STREQ(policy.name(), "keep-fastest-free");

  const std::vector<TierView> tiers = {TierView{TierId::kMemory, 64 * kMiB, 34 * kMiB},
                                       TierView{static_cast<TierId>(1), 64 * kMiB, 64 * kMiB}};
  EXPECT_EQ(policy.choose(tiers, PlacementRequest{kBlockBytes}), TierId::kMemory);
  const PlacementRequest large{8 * kMiB};
  const Placement placement = policy.solve(tiers, large);
  EXPECT_EQ(fault_in(placement, large, tiers), nullptr);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 2 * kMiB);
  EXPECT_EQ(placement.bytes_in(static_cast<TierId>(1)), 6 * kMiB);
  EXPECT_TRUE(complaints.empty());
}

}  // namespace
}  // namespace cairn
