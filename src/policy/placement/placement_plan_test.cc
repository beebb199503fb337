// SPDX-License-Identifier: Apache-2.0
// Plans: how decisions become patterns, and when a pattern no longer says what the policy would.
#include "policy/placement/placement_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policy/placement/policies.h"
#include "policy/placement/testing/random_views.h"

namespace cairn {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TierView tier(unsigned id, std::uint64_t capacity, std::uint64_t free) {
  TierView view{static_cast<TierId>(id), capacity, free};
  view.bandwidth = 8e9 / (1u << (2 * id));
  return view;
}

std::array<unsigned, kTiersMax> counts_of(const PlacementPlan& plan) {
  std::array<unsigned, kTiersMax> counts{};
  for (const TierId id : plan.pattern.tiers) ++counts[raw(id)];
  return counts;
}

const PlacementPolicy& policy(const char* name) { return *placement_policy_named(name); }

TEST(PlacementPlan, AWindowIsFollowedFastestFirst) {
  const std::vector<TierView> tiers = {tier(0, kMiB, kMiB), tier(1, 8 * kMiB, 2 * kMiB),
                                       tier(2, 8 * kMiB, 8 * kMiB)};
  const PlacementPlan plan =
      make_plan(policy("max-bandwidth"), tiers, PlacementRequest{kPlanWindowBytes});
  EXPECT_EQ(plan.order, PlanOrder::kWindow);
  EXPECT_TRUE(std::is_sorted(plan.pattern.tiers.begin(), plan.pattern.tiers.end()));
  const auto counts = counts_of(plan);
  EXPECT_EQ(counts[0], 16u);
  EXPECT_EQ(counts[1], 32u);
  EXPECT_EQ(counts[2], 16u);
  EXPECT_EQ(plan.pattern.at(15), TierId::kMemory);
  EXPECT_EQ(plan.pattern.at(16), static_cast<TierId>(1));
  EXPECT_EQ(plan.pattern.at(64), TierId::kMemory);
  EXPECT_EQ(plan.unplaced_bytes, 0u);
  EXPECT_TRUE(plan.names(static_cast<TierId>(2)));
  EXPECT_FALSE(plan.names(static_cast<TierId>(3)));
}

TEST(PlacementPlan, ElementsStandForEqualPartsOfAnyWindow) {
  const std::vector<TierView> tiers = {tier(0, kMiB, kMiB), tier(1, 1024 * kMiB, 1024 * kMiB)};
  const PlacementPlan wide = make_plan(policy("max-bandwidth"), tiers, PlacementRequest{64 * kMiB});
  EXPECT_EQ(counts_of(wide)[0], 1u);
  const PlacementPlan narrow = make_plan(policy("max-bandwidth"), tiers, PlacementRequest{kMiB});
  EXPECT_EQ(counts_of(narrow)[0], 64u);
}

TEST(PlacementPlan, RoundRobinIsInterleaved) {
  const std::vector<TierView> tiers = {tier(0, 8 * kMiB, 8 * kMiB), tier(1, 8 * kMiB, 8 * kMiB),
                                       tier(2, 8 * kMiB, 8 * kMiB)};
  const PlacementPlan plan =
      make_plan(policy("round-robin"), tiers, PlacementRequest{kPlanWindowBytes});
  EXPECT_EQ(plan.order, PlanOrder::kPerBlock);
  for (unsigned element = 0; element < 63; ++element) {
    EXPECT_EQ(raw(plan.pattern.at(element)), element % 3) << element;
  }
}

TEST(PlacementPlan, EachDecisionSeesTheRoomThatTheOthersLeft) {
  const std::vector<TierView> tiers = {tier(0, kMiB, kMiB), tier(1, 8 * kMiB, 8 * kMiB)};
  for (const char* name : {"round-robin", "random", "fastest-with-room"}) {
    const auto counts =
        counts_of(make_plan(policy(name), tiers, PlacementRequest{kPlanWindowBytes}));
    EXPECT_EQ(counts[0], 16u) << name;
    EXPECT_EQ(counts[1], 48u) << name;
  }
}

TEST(PlacementPlan, UnitsAreSpreadInProportionToTheCapacities) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB), tier(1, 64 * kMiB, 64 * kMiB),
                                       tier(2, 128 * kMiB, 128 * kMiB)};
  PlacementRequest window{kPlanWindowBytes};
  const PlacementPlan plan = make_plan(policy("max-locality"), tiers, window);
  EXPECT_EQ(plan.order, PlanOrder::kPerUnit);
  const auto counts = counts_of(plan);
  EXPECT_NEAR(counts[0], 16, 1);
  EXPECT_NEAR(counts[1], 16, 1);
  EXPECT_NEAR(counts[2], 32, 1);

  // The window of one unit is that unit's alone.
  window.unit.resident_bytes[1] = kMiB;
  const PlacementPlan of_unit = make_plan(policy("max-locality"), tiers, window);
  EXPECT_EQ(of_unit.order, PlanOrder::kWindow);
  EXPECT_EQ(counts_of(of_unit)[1], 64u);
}

TEST(PlacementPlan, WithoutRoomItNamesTheFastestAllowedTier) {
  const std::vector<TierView> tiers = {tier(0, 8 * kMiB, 0), tier(1, 8 * kMiB, 0)};
  for (const PlacementPolicy* member : placement_policies()) {
    PlacementRequest window{kPlanWindowBytes};
    EXPECT_EQ(counts_of(make_plan(*member, tiers, window))[0], 64u) << member->name();
    EXPECT_EQ(make_plan(*member, tiers, window).unplaced_bytes, kPlanWindowBytes);
    window.fastest = static_cast<TierId>(1);
    EXPECT_EQ(counts_of(make_plan(*member, tiers, window))[1], 64u) << member->name();
    EXPECT_EQ(make_plan(*member, {}, window).tier_count, 0u);
  }
}

TEST(PlacementPlan, RoomToMakeIsListed) {
  std::vector<TierView> tiers = {tier(0, 8 * kMiB, kMiB), tier(1, 8 * kMiB, 8 * kMiB)};
  tiers[0].hotness_min = 10;
  PlacementRequest window{kPlanWindowBytes};
  window.unit.hotness = 12;
  const PlacementPlan plan = make_plan(policy("hot-data"), tiers, window);
  ASSERT_EQ(plan.rooms_to_make().size(), 1u);
  EXPECT_EQ(plan.rooms_to_make()[0].tier, TierId::kMemory);
  EXPECT_EQ(plan.rooms_to_make()[0].bytes, 3 * kMiB);
  EXPECT_EQ(counts_of(plan)[0], 64u);
}

TEST(PlacementPlan, ElementsNameOnlyTiersThatExist) {
  constexpr std::uint32_t kSeed = 555;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  testing::RandomViews random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const auto tiers = random.tiers(6, 200);
    const auto window = random.request(tiers, 1 + random.below(40'000'000));
    for (const PlacementPolicy* member : placement_policies()) {
      const PlacementPlan plan = make_plan(*member, tiers, window);
      if (tiers.empty() || tiers.back().id < window.fastest) continue;
      for (const TierId id : plan.pattern.tiers) {
        ASSERT_LT(raw(id), tiers.size()) << member->name() << " round " << round;
        ASSERT_GE(id, window.fastest) << member->name() << " round " << round;
      }
    }
  }
}

class Staleness : public ::testing::Test {
 protected:
  Staleness()
      : tiers_{tier(0, 64 * kMiB, 16 * kMiB), tier(1, 1024 * kMiB, 512 * kMiB)},
        plan_(make_plan(policy("max-bandwidth"), tiers_, PlacementRequest{kPlanWindowBytes})) {}

  std::vector<TierView> tiers_;
  PlacementPlan plan_;
};

TEST_F(Staleness, UpToAStepNothingChanges) {
  EXPECT_FALSE(is_stale(plan_, tiers_));
  tiers_[0].free_bytes -= kMiB;
  tiers_[1].free_bytes += 16 * kMiB;
  EXPECT_FALSE(is_stale(plan_, tiers_));
}

TEST_F(Staleness, MoreThanAStepDoes) {
  tiers_[0].free_bytes -= kMiB + kBlockBytes;
  EXPECT_TRUE(is_stale(plan_, tiers_));
  EXPECT_FALSE(is_stale(plan_, tiers_, 32));
  EXPECT_TRUE(is_stale(plan_, tiers_, 1000000));
}

TEST_F(Staleness, MoreRoomCountsAsWell) {
  tiers_[1].free_bytes += 16 * kMiB + kBlockBytes;
  EXPECT_TRUE(is_stale(plan_, tiers_));
}

TEST_F(Staleness, ANamedTierWithoutRoomCountsAtOnce) {
  tiers_[0].free_bytes = kBlockBytes;
  plan_ = make_plan(policy("max-bandwidth"), tiers_, PlacementRequest{kPlanWindowBytes});
  ASSERT_TRUE(plan_.names(TierId::kMemory));
  tiers_[0].free_bytes = 0;
  EXPECT_TRUE(is_stale(plan_, tiers_));
  plan_ = make_plan(policy("max-bandwidth"), tiers_, PlacementRequest{kPlanWindowBytes});
  ASSERT_FALSE(plan_.names(TierId::kMemory));
  // A block that comes and goes is no reason to think again.
  tiers_[0].free_bytes = kBlockBytes;
  EXPECT_FALSE(is_stale(plan_, tiers_));
}

TEST_F(Staleness, OtherTiersSpeedsAndMinima) {
  auto other = tiers_;
  other[1].bandwidth *= 1.1;
  EXPECT_FALSE(is_stale(plan_, other));
  other[1].bandwidth *= 1.2;
  EXPECT_TRUE(is_stale(plan_, other));
  other = tiers_;
  other[0].latency *= 2;
  EXPECT_TRUE(is_stale(plan_, other));
  other = tiers_;
  other[0].hotness_min = 1;
  EXPECT_TRUE(is_stale(plan_, other));
  other = tiers_;
  other[1].capacity_bytes += kBlockBytes;
  EXPECT_TRUE(is_stale(plan_, other));
  other.pop_back();
  EXPECT_TRUE(is_stale(plan_, other));
}

}  // namespace
}  // namespace cairn
