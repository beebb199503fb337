// SPDX-License-Identifier: Apache-2.0
// The conformance suite of placement policies, run against every member of the table, and the rules
// of each.
#include "placement/placement_policy.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "placement/policies.h"

namespace cairn {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

TierView tier(unsigned id, std::uint64_t free_bytes, std::uint64_t reserve_bytes = 0) {
  return TierView{static_cast<TierId>(id), 64 * kMiB, free_bytes, reserve_bytes};
}

class PlacementConformance : public testing::TestWithParam<const PlacementPolicy*> {};

TEST_P(PlacementConformance, HasAName) { EXPECT_FALSE(std::string(GetParam()->name()).empty()); }

TEST_P(PlacementConformance, NoTierNoPlace) {
  EXPECT_FALSE(GetParam()->choose({}, PlacementRequest{kBlockBytes, TierId::kMemory}).has_value());
}

TEST_P(PlacementConformance, ChoosesOnlyWhatIsThereHasRoomAndIsNotAbove) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TierView> tiers;
    const unsigned count = random() % 4;
    for (unsigned id = 0; id < count; ++id) {
      tiers.push_back(tier(id, random() % 4 * kBlockBytes, random() % 3 * kBlockBytes));
    }
    const PlacementRequest request{kBlockBytes * (1 + random() % 2),
                                   static_cast<TierId>(random() % 4)};
    const auto chosen = GetParam()->choose(tiers, request);
    if (!chosen) continue;
    ASSERT_LT(raw(*chosen), tiers.size());
    EXPECT_GE(raw(*chosen), raw(request.fastest));
    EXPECT_GE(tiers[raw(*chosen)].free_bytes, request.bytes);
  }
}

TEST_P(PlacementConformance, FindsPlaceWhereThereIsPlenty) {
  const std::vector<TierView> tiers = {tier(0, 0), tier(1, 32 * kMiB, kMiB)};
  EXPECT_EQ(GetParam()->choose(tiers, PlacementRequest{kBlockBytes, TierId::kMemory}),
            static_cast<TierId>(1));
}

INSTANTIATE_TEST_SUITE_P(All, PlacementConformance, testing::ValuesIn(placement_policies()),
                         [](const auto& member) {
                           std::string name = member.param->name();
                           for (char& letter : name) letter = letter == '-' ? '_' : letter;
                           return name;
                         });

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

}  // namespace
}  // namespace cairn
