// SPDX-License-Identifier: Apache-2.0
// Max-locality: its cost against trying every placement, where units settle, how they spread.
#include "policy/placement/max_locality.h"

#include <gtest/gtest.h>

#include <string>

#include "policy/placement/placement_check.h"
#include "policy/placement/testing/exhaustive_search.h"
#include "policy/placement/testing/random_views.h"

namespace cairn {
namespace {

using testing::ExhaustiveSearch;
using testing::RandomViews;
using testing::SearchCosts;
using testing::SearchTier;

constexpr std::uint32_t kSeed = 31337;
constexpr std::uint64_t kMiB = 1 << 20;

TierView tier(unsigned id, std::uint64_t capacity, std::uint64_t free) {
  TierView view{static_cast<TierId>(id), capacity, free};
  view.bandwidth = 8e9 / (1u << (2 * id));
  return view;
}

// The costs of the header, written out anew; the home alone decides.
double least_cost(const std::vector<TierView>& tiers, const PlacementRequest& request) {
  std::vector<TierView> allowed;
  std::vector<SearchTier> rooms;
  double slowest = 0;
  for (const TierView& tier : tiers) {
    slowest = std::max(slowest, 1 / tier.bandwidth);
    if (tier.id < request.fastest) continue;
    allowed.push_back(tier);
    const std::uint64_t own = request.unit.resident_bytes[raw(tier.id)];
    rooms.push_back(
        {static_cast<unsigned>(tier.usable_bytes() / kBlockBytes),
         static_cast<unsigned>((tier.capacity_bytes - tier.free_bytes - own) / kBlockBytes)});
  }
  const auto home = MaxLocality::home_of(tiers, request);
  const double blocks_in_all = static_cast<double>(request.bytes / kBlockBytes);
  const auto time = [&](std::size_t at, unsigned blocks) {
    return blocks / blocks_in_all / allowed[at].bandwidth / slowest;
  };
  SearchCosts costs;
  costs.room = 0.25;
  costs.place = [&](std::size_t at, unsigned blocks) {
    const bool is_new = request.unit.resident_bytes[raw(allowed[at].id)] == 0;
    const bool is_stray = allowed[at].id != home;
    return (is_new ? 1 : 0) + (is_stray ? 1.0 / 16 : 0) + time(at, blocks) / 32;
  };
  costs.move = [&](std::size_t at, unsigned blocks) {
    return request.move_share * time(at, blocks) / 32;
  };
  costs.store = [](unsigned blocks) { return 4.0 + 4.0 * blocks; };
  return ExhaustiveSearch(rooms, costs)
      .least_cost(static_cast<unsigned>(request.bytes / kBlockBytes));
}

TEST(MaxLocality, IsTheLeastDispersion) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  int reorganized = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto tiers = random.tiers(4, 8);
    const PlacementRequest request = random.request(tiers, (1 + random.below(8)) * kBlockBytes);
    const Placement placement = MaxLocality().solve(tiers, request);
    if (tiers.empty() || raw(tiers.back().id) < raw(request.fastest)) continue;
    ASSERT_NEAR(placement.seconds, least_cost(tiers, request), 1e-9) << "round " << round;
    reorganized += placement.count > 0 && placement.steps[0].kind == PlacementStep::Kind::kMakeRoom;
  }
  EXPECT_GT(reorganized, 50);
}

TEST(MaxLocality, AUnitStaysWhereItIs) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 32 * kMiB), tier(1, 64 * kMiB, 32 * kMiB),
                                       tier(2, 64 * kMiB, 32 * kMiB)};
  for (unsigned at = 0; at < 3; ++at) {
    PlacementRequest request{4 * kMiB};
    request.unit.resident_bytes[at] = 8 * kMiB;
    EXPECT_EQ(MaxLocality().choose(tiers, request), static_cast<TierId>(at));
  }
}

TEST(MaxLocality, NewUnitsFillAllTiersInProportion) {
  std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB), tier(1, 128 * kMiB, 128 * kMiB),
                                 tier(2, 256 * kMiB, 256 * kMiB)};
  // Half of the capacity in units of different sizes.
  RandomViews random(kSeed);
  std::uint64_t placed = 0;
  while (placed < 224 * kMiB) {
    PlacementRequest request{(1 + random.below(64)) * kBlockBytes};
    request.unit.bytes = request.bytes;
    const Placement placement = MaxLocality().solve(tiers, request);
    ASSERT_EQ(placement.count, 1u);
    ASSERT_EQ(carry_out(placement, request, tiers), nullptr);
    placed += request.bytes;
  }
  for (const TierView& view : tiers) {
    const double used = static_cast<double>(view.capacity_bytes - view.free_bytes);
    EXPECT_NEAR(used / static_cast<double>(view.capacity_bytes), 0.5, 0.06) << raw(view.id);
  }
}

TEST(MaxLocality, ANewUnitGoesWholeToATierThatHoldsIt) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 2 * kMiB), tier(1, 64 * kMiB, 8 * kMiB)};
  EXPECT_EQ(MaxLocality().choose(tiers, PlacementRequest{4 * kMiB}), static_cast<TierId>(1));
}

TEST(MaxLocality, RoomIsMadeForAUnitThatOutgrowsItsTier) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, kMiB), tier(1, 64 * kMiB, 64 * kMiB)};
  PlacementRequest request{4 * kMiB};
  request.unit.resident_bytes[0] = 16 * kMiB;
  const Placement placement = MaxLocality().solve(tiers, request);
  ASSERT_EQ(placement.count, 2u);
  EXPECT_EQ(placement.steps[0].kind, PlacementStep::Kind::kMakeRoom);
  EXPECT_EQ(placement.steps[0].bytes, 3 * kMiB);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 4 * kMiB);
}

TEST(MaxLocality, AUnitThatFillsItsTierAloneIsDispersed) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, kMiB), tier(1, 64 * kMiB, 64 * kMiB)};
  PlacementRequest request{4 * kMiB};
  request.unit.resident_bytes[0] = 63 * kMiB;
  const Placement placement = MaxLocality().solve(tiers, request);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), kMiB);
  EXPECT_EQ(placement.bytes_in(static_cast<TierId>(1)), 3 * kMiB);
}

TEST(MaxLocality, ADispersedUnitGetsNoThirdTier) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 0), tier(1, 64 * kMiB, 64 * kMiB),
                                       tier(2, 64 * kMiB, 64 * kMiB)};
  PlacementRequest request{4 * kMiB};
  request.unit.resident_bytes[0] = 64 * kMiB;
  request.unit.resident_bytes[2] = 16 * kMiB;
  EXPECT_EQ(MaxLocality().choose(tiers, request), static_cast<TierId>(2));
}

}  // namespace
}  // namespace cairn
