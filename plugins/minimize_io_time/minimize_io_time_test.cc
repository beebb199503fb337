// SPDX-License-Identifier: Apache-2.0
// The linear programme against trying every division, and the rules that every policy keeps.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "policy/placement/placement_check.h"
#include "policy/placement/placement_plan.h"
#include "policy/placement/policies.h"
#include "policy/placement/testing/exhaustive_search.h"
#include "policy/placement/testing/random_views.h"
#include "service/plugins/plugin_policy.h"

namespace cairn {
namespace {

using testing::ExhaustiveSearch;
using testing::RandomViews;
using testing::SearchCosts;
using testing::SearchTier;

constexpr std::uint32_t kSeed = 1947;

class MinimizeIoTime : public ::testing::Test {
 protected:
  MinimizeIoTime() {
    // Not the service's limit: whatever the machine does meanwhile, its own answer is wanted.
    auto loaded = PluginPolicy::load(
        MINIMIZE_IO_TIME, *placement_policy_named("fastest-with-room"),
        [](const std::string& complaint) { ADD_FAILURE() << complaint; },
        std::chrono::milliseconds(20'000));
    EXPECT_TRUE(loaded.is_ok()) << loaded.status().message();
    if (loaded.is_ok()) policy_ = std::move(loaded.value());
  }
  void SetUp() override { ASSERT_NE(policy_, nullptr); }

  std::unique_ptr<PluginPolicy> policy_;
};

double seconds_of(double bandwidth, double latency, unsigned blocks) {
  return blocks * (latency + kBlockBytes / bandwidth);
}

double least_cost(const std::vector<TierView>& tiers, const PlacementRequest& request) {
  std::vector<TierView> allowed;
  std::vector<SearchTier> rooms;
  for (const TierView& tier : tiers) {
    if (tier.id < request.fastest) continue;
    allowed.push_back(tier);
    rooms.push_back({static_cast<unsigned>(tier.usable_bytes() / kBlockBytes), 0});
  }
  SearchCosts costs;
  costs.place = [&](std::size_t at, unsigned blocks) {
    return seconds_of(allowed[at].bandwidth, allowed[at].latency, blocks);
  };
  costs.store = [&](unsigned blocks) {
    return seconds_of(request.store_bandwidth, request.store_latency, blocks);
  };
  return ExhaustiveSearch(rooms, costs)
      .least_cost(static_cast<unsigned>(request.bytes / kBlockBytes));
}

TEST_F(MinimizeIoTime, IsTheOptimum) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  for (int round = 0; round < 1500; ++round) {
    const auto tiers = random.tiers(4, 8);
    PlacementRequest request = random.request(tiers, (1 + random.below(12)) * kBlockBytes);
    request.store_bandwidth = 1e6 * (1 + random.below(1000));
    request.store_latency = 1e-6 * random.below(10000);
    const Placement placement = policy_->solve(tiers, request);
    const double least = least_cost(tiers, request);
    ASSERT_NEAR(placement.seconds, least, 1e-6 * least) << "round " << round;
    ASSERT_STREQ(fault_in(placement, request, tiers), nullptr) << "round " << round;
  }
}

TEST_F(MinimizeIoTime, UsesTheRoomThatThereIs) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 1);
  for (int round = 0; round < 1500; ++round) {
    const auto tiers = random.tiers(6, 100);
    const PlacementRequest request = random.request(tiers, 1 + random.below(30'000'000));
    std::uint64_t room = 0;
    for (const TierView& view : tiers) room += view.id < request.fastest ? 0 : view.usable_bytes();
    const Placement placement = policy_->solve(tiers, request);
    ASSERT_STREQ(fault_in(placement, request, tiers), nullptr) << "round " << round;
    ASSERT_EQ(placement.placed_bytes(), std::min(room, request.bytes)) << "round " << round;
  }
}

TEST_F(MinimizeIoTime, DegenerateRequestsAndTiers) {
  EXPECT_EQ(policy_->solve({}, PlacementRequest{kBlockBytes}).count, 0u);
  EXPECT_EQ(policy_->solve({}, PlacementRequest{}).count, 0u);
  std::vector<TierView> tiers(3);
  for (unsigned id = 0; id < 3; ++id) tiers[id].id = static_cast<TierId>(id);
  EXPECT_EQ(policy_->solve(tiers, PlacementRequest{1 << 20}).count, 0u);
  tiers[1].capacity_bytes = tiers[1].free_bytes = 1 << 20;
  tiers[1].bandwidth = 0;
  tiers[1].latency = std::nan("");
  EXPECT_EQ(policy_->choose(tiers, PlacementRequest{1 << 20}), static_cast<TierId>(1));
}

TEST_F(MinimizeIoTime, MakesPlans) {
  const std::vector<TierView> tiers = {
      TierView{TierId::kMemory, 16 * kBlockBytes, 16 * kBlockBytes, 0, 8e9, 1e-7},
      TierView{static_cast<TierId>(1), 256 * kBlockBytes, 256 * kBlockBytes, 0, 1e9, 1e-5}};
  const PlacementPlan plan = make_plan(*policy_, tiers, PlacementRequest{kPlanWindowBytes});
  EXPECT_EQ(plan.pattern.at(15), TierId::kMemory);
  EXPECT_EQ(plan.pattern.at(16), static_cast<TierId>(1));
}

}  // namespace
}  // namespace cairn
