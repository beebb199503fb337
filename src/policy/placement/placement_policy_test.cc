// SPDX-License-Identifier: Apache-2.0
// The conformance suite of placement policies, run against every member of the table, and the rules
// of those that have no file of their own.
#include "policy/placement/placement_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "policy/placement/placement_check.h"
#include "policy/placement/policies.h"
#include "policy/placement/testing/random_views.h"

namespace cairn {
namespace {

using testing::RandomViews;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint32_t kSeed = 20120;

TierView tier(unsigned id, std::uint64_t free_bytes, std::uint64_t reserve_bytes = 0) {
  return TierView{static_cast<TierId>(id), 64 * kMiB, free_bytes, reserve_bytes};
}

bool is_same(const Placement& one, const Placement& other) {
  return one.seconds == other.seconds &&
         std::equal(one.all().begin(), one.all().end(), other.all().begin(), other.all().end(),
                    [](const PlacementStep& left, const PlacementStep& right) {
                      return left.kind == right.kind && left.tier == right.tier &&
                             left.bytes == right.bytes;
                    });
}

class PlacementConformance : public ::testing::TestWithParam<const PlacementPolicy*> {
 protected:
  const PlacementPolicy& policy() const { return *GetParam(); }
};

TEST_P(PlacementConformance, IsFoundByItsName) {
  EXPECT_FALSE(std::string(policy().name()).empty());
  EXPECT_EQ(placement_policy_named(policy().name()), &policy());
}

TEST_P(PlacementConformance, NoTierNoPlace) {
  EXPECT_FALSE(policy().choose({}, PlacementRequest{kBlockBytes, TierId::kMemory}).has_value());
  EXPECT_EQ(policy().solve({}, PlacementRequest{64 * kMiB}).count, 0u);
}

TEST_P(PlacementConformance, NothingAskedNothingPlaced) {
  const std::vector<TierView> tiers = {tier(0, 32 * kMiB)};
  EXPECT_EQ(policy().solve(tiers, PlacementRequest{}).placed_bytes(), 0u);
}

TEST_P(PlacementConformance, TiersWithoutCapacityTakeNothing) {
  std::vector<TierView> tiers(4);
  for (unsigned id = 0; id < tiers.size(); ++id) tiers[id].id = static_cast<TierId>(id);
  EXPECT_EQ(policy().solve(tiers, PlacementRequest{kMiB}).count, 0u);
  tiers[2] = tier(2, kMiB);
  EXPECT_EQ(policy().choose(tiers, PlacementRequest{kMiB}), static_cast<TierId>(2));
}

TEST_P(PlacementConformance, MeasuredNonsenseIsSurvived) {
  std::vector<TierView> tiers = {tier(0, kMiB), tier(1, kMiB), tier(2, kMiB)};
  tiers[0].bandwidth = 0;
  tiers[0].latency = -1;
  tiers[1].bandwidth = std::numeric_limits<double>::infinity();
  tiers[1].latency = std::numeric_limits<double>::quiet_NaN();
  tiers[2].bandwidth = 1e-320;
  tiers[2].latency = std::numeric_limits<double>::infinity();
  PlacementRequest request{kMiB};
  request.move_share = std::numeric_limits<double>::quiet_NaN();
  const Placement placement = policy().solve(tiers, request);
  EXPECT_EQ(fault_in(placement, request, tiers), nullptr);
  EXPECT_EQ(placement.placed_bytes(), kMiB);
}

TEST_P(PlacementConformance, EveryDecisionCanBeCarriedOut) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  for (int round = 0; round < 20000; ++round) {
    const auto tiers = random.tiers(6, 40);
    const std::uint64_t sizes[] = {1 + random.below(kBlockBytes), kBlockBytes,
                                   (1 + random.below(40)) * kBlockBytes,
                                   1 + random.below(20'000'000)};
    const PlacementRequest request = random.request(tiers, sizes[random.below(4)]);
    const Placement placement = policy().solve(tiers, request);
    ASSERT_STREQ(fault_in(placement, request, tiers), nullptr) << "round " << round;
  }
}

TEST_P(PlacementConformance, UsesTheRoomThatThereIs) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 1);
  const bool is_undivided = std::string(policy().name()) == "fastest-with-room";
  for (int round = 0; round < 20000; ++round) {
    const auto tiers = random.tiers(6, 100);
    const PlacementRequest request = random.request(tiers, 1 + random.below(30'000'000));
    std::uint64_t room = 0;
    bool one_has_all = false;
    for (const TierView& view : tiers) {
      if (view.id < request.fastest) continue;
      room += view.usable_bytes();
      one_has_all = one_has_all || view.usable_bytes() >= request.bytes;
    }
    const std::uint64_t placed = policy().solve(tiers, request).placed_bytes();
    const std::uint64_t least = std::min(room, request.bytes);
    if (one_has_all || !is_undivided) {
      ASSERT_GE(placed, least) << policy().name() << " round " << round;
    }
    ASSERT_LE(placed, request.bytes);
  }
}

// All pieces but the one with the end of the request are whole blocks.
TEST_P(PlacementConformance, BlocksAreNotDivided) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 4);
  for (int round = 0; round < 5000; ++round) {
    auto tiers = random.tiers(6, 100);
    for (TierView& view : tiers) view.free_bytes -= std::min<std::uint64_t>(view.free_bytes, 4096);
    const PlacementRequest request = random.request(tiers, 1 + random.below(20'000'000));
    const Placement placement = policy().solve(tiers, request);
    ASSERT_STREQ(fault_in(placement, request, tiers), nullptr) << "round " << round;
    const auto steps = placement.all();
    const auto divided = std::count_if(steps.begin(), steps.end(), [](const PlacementStep& step) {
      return step.kind == PlacementStep::Kind::kPlace && step.bytes % kBlockBytes != 0;
    });
    ASSERT_LE(divided, placement.placed_bytes() == request.bytes ? 1 : 0) << "round " << round;
  }
}

TEST_P(PlacementConformance, EqualViewsGetEqualAnswers) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 2);
  for (int round = 0; round < 5000; ++round) {
    const auto tiers = random.tiers(6, 40);
    const PlacementRequest request = random.request(tiers, (1 + random.below(80)) * kBlockBytes);
    const auto same_tiers = tiers;
    const PlacementRequest same_request = request;
    const Placement first = policy().solve(tiers, request);
    // Something else in between: nothing may be remembered.
    policy().solve(tiers, PlacementRequest{7 * kBlockBytes});
    ASSERT_TRUE(is_same(first, policy().solve(same_tiers, same_request))) << "round " << round;
  }
}

TEST_P(PlacementConformance, ChoosesOnlyATierThatTakesAllOfIt) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 3);
  for (int round = 0; round < 5000; ++round) {
    const auto tiers = random.tiers(4, 8);
    const PlacementRequest request = random.request(tiers, (1 + random.below(3)) * kBlockBytes);
    const auto chosen = policy().choose(tiers, request);
    if (!chosen) continue;
    ASSERT_LT(raw(*chosen), tiers.size());
    EXPECT_GE(*chosen, request.fastest);
    EXPECT_GE(tiers[raw(*chosen)].capacity_bytes, request.bytes);
  }
}

TEST_P(PlacementConformance, FindsPlaceWhereThereIsPlenty) {
  const std::vector<TierView> tiers = {tier(0, 0), tier(1, 32 * kMiB, kMiB)};
  EXPECT_EQ(policy().choose(tiers, PlacementRequest{kBlockBytes, TierId::kMemory}),
            static_cast<TierId>(1));
}

TEST_P(PlacementConformance, EqualSpeedsAreNoReasonToDivide) {
  const std::vector<TierView> tiers = {tier(0, 8 * kMiB), tier(1, 8 * kMiB), tier(2, 8 * kMiB)};
  const Placement placement = policy().solve(tiers, PlacementRequest{4 * kMiB});
  ASSERT_EQ(placement.count, 1u);
  EXPECT_EQ(placement.steps[0].bytes, 4 * kMiB);
}

INSTANTIATE_TEST_SUITE_P(All, PlacementConformance, ::testing::ValuesIn(placement_policies()),
                         [](const auto& member) {
                           std::string name = member.param->name();
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

TEST(PlacementPolicies, TheDefaultMaximisesBandwidth) {
  EXPECT_STREQ(placement_policies()[0]->name(), "max-bandwidth");
  EXPECT_EQ(placement_policy_named("max_bandwidth"), nullptr);
  std::set<std::string> names;
  for (const PlacementPolicy* policy : placement_policies()) names.insert(policy->name());
  EXPECT_EQ(names.size(), placement_policies().size());
}

TEST(FastestWithRoom, PrefersTheFasterTier) {
  const std::vector<TierView> tiers = {tier(0, 2 * kMiB), tier(1, 32 * kMiB)};
  EXPECT_EQ(FastestWithRoom().choose(tiers, PlacementRequest{kMiB, TierId::kMemory}),
            TierId::kMemory);
}

TEST(FastestWithRoom, LeavesTheReserveAlone) {
  const std::vector<TierView> tiers = {tier(0, 2 * kMiB, 2 * kMiB), tier(1, 3 * kMiB, 2 * kMiB)};
  EXPECT_EQ(FastestWithRoom().choose(tiers, PlacementRequest{kMiB, TierId::kMemory}),
            static_cast<TierId>(1));
  EXPECT_FALSE(
      FastestWithRoom().choose(tiers, PlacementRequest{2 * kMiB, TierId::kMemory}).has_value());
}

TEST(RoundRobin, TakesTheTiersWithRoomInTurn) {
  const std::vector<TierView> tiers = {tier(0, kMiB), tier(1, 0), tier(2, kMiB), tier(3, kMiB)};
  std::vector<unsigned> chosen;
  for (std::uint64_t sequence = 0; sequence < 6; ++sequence) {
    PlacementRequest request{kBlockBytes};
    request.sequence = sequence;
    chosen.push_back(raw(*RoundRobin().choose(tiers, request)));
  }
  EXPECT_EQ(chosen, (std::vector<unsigned>{0, 2, 3, 0, 2, 3}));
}

TEST(RandomTier, UsesAllTiersWithRoomAboutEquallyAndInNoCycle) {
  const std::vector<TierView> tiers = {tier(0, kMiB), tier(1, 0), tier(2, kMiB), tier(3, kMiB)};
  std::array<unsigned, 4> counts{};
  unsigned repeats = 0;
  unsigned last = 9;
  for (std::uint64_t sequence = 0; sequence < 3000; ++sequence) {
    PlacementRequest request{kBlockBytes};
    request.sequence = sequence;
    const unsigned chosen = raw(*RandomTier().choose(tiers, request));
    ++counts[chosen];
    repeats += chosen == last ? 1 : 0;
    last = chosen;
  }
  EXPECT_EQ(counts[1], 0u);
  for (unsigned id : {0u, 2u, 3u}) EXPECT_NEAR(counts[id], 1000, 100) << id;
  EXPECT_NEAR(repeats, 1000, 100);
}

}  // namespace
}  // namespace cairn
