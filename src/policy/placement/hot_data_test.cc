// SPDX-License-Identifier: Apache-2.0
// Hot-data: its cost against trying every placement, the gate, and where the minima lie.
#include "policy/placement/hot_data.h"

#include <gtest/gtest.h>

#include <string>

#include "policy/placement/testing/exhaustive_search.h"
#include "policy/placement/testing/random_views.h"

namespace cairn {
namespace {

using testing::ExhaustiveSearch;
using testing::RandomViews;
using testing::SearchCosts;
using testing::SearchTier;

constexpr std::uint32_t kSeed = 27182;
constexpr std::uint64_t kMiB = 1 << 20;

TierView tier(unsigned id, std::uint64_t capacity, std::uint64_t free, double hotness_min) {
  TierView view{static_cast<TierId>(id), capacity, free};
  view.bandwidth = 8e9 / (1u << (2 * id));
  view.hotness_min = hotness_min;
  return view;
}

PlacementRequest request_of(std::uint64_t bytes, double hotness) {
  PlacementRequest request{bytes};
  request.unit.hotness = hotness;
  return request;
}

// The costs of the header, written out anew.
double least_cost(const std::vector<TierView>& tiers, const PlacementRequest& request) {
  std::vector<TierView> allowed;
  std::vector<SearchTier> rooms;
  double slowest = 0;
  for (const TierView& tier : tiers) {
    slowest = std::max(slowest, 1 / tier.bandwidth);
    if (tier.id < request.fastest) continue;
    allowed.push_back(tier);
    const bool is_reached = tier.hotness_min > 0 && request.unit.hotness >= tier.hotness_min;
    const std::uint64_t others =
        tier.capacity_bytes - tier.free_bytes - request.unit.resident_bytes[raw(tier.id)];
    rooms.push_back({static_cast<unsigned>(tier.usable_bytes() / kBlockBytes),
                     is_reached ? static_cast<unsigned>(others / kBlockBytes) : 0});
  }
  std::size_t home = 0;
  while (home + 1 < allowed.size() && allowed[home].hotness_min > request.unit.hotness) ++home;
  const double all = static_cast<double>(request.bytes / kBlockBytes);
  SearchCosts costs;
  costs.place = [&, home](std::size_t at, unsigned blocks) {
    const double misplaced = at >= home ? static_cast<double>(at - home)
                                        : static_cast<double>(allowed.size() + home - at);
    return blocks / all * (misplaced + 1 / allowed[at].bandwidth / slowest / 8);
  };
  costs.move = [&](std::size_t at, unsigned blocks) {
    const double time = request.move_share / allowed[at].bandwidth / slowest / 16;
    return blocks / all * (0.5 + time);
  };
  costs.store = [&](unsigned blocks) { return blocks / all * 4 * kTiersMax; };
  return ExhaustiveSearch(rooms, costs)
      .least_cost(static_cast<unsigned>(request.bytes / kBlockBytes));
}

TEST(HotData, MisplacesTheLeast) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  int with_room = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto tiers = random.tiers(4, 8);
    const PlacementRequest request = random.request(tiers, (1 + random.below(8)) * kBlockBytes);
    if (tiers.empty() || raw(tiers.back().id) < raw(request.fastest)) continue;
    const Placement placement = HotData().solve(tiers, request);
    ASSERT_NEAR(placement.seconds, least_cost(tiers, request), 1e-9) << "round " << round;
    with_room += placement.count > 0 && placement.steps[0].kind == PlacementStep::Kind::kMakeRoom;
  }
  EXPECT_GT(with_room, 50);
}

TEST(HotData, TheMinimumGatesEntry) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB, 10),
                                       tier(1, 64 * kMiB, 64 * kMiB, 2),
                                       tier(2, 64 * kMiB, 64 * kMiB, 0)};
  EXPECT_EQ(HotData().choose(tiers, request_of(kMiB, 10)), TierId::kMemory);
  EXPECT_EQ(HotData().choose(tiers, request_of(kMiB, 9)), static_cast<TierId>(1));
  EXPECT_EQ(HotData().choose(tiers, request_of(kMiB, 1)), static_cast<TierId>(2));
}

TEST(HotData, ColdDataLiesHighOnlyBeforeItGoesToTheStore) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB, 10),
                                       tier(1, 64 * kMiB, kMiB, 0)};
  const Placement placement = HotData().solve(tiers, request_of(3 * kMiB, 0));
  EXPECT_EQ(placement.bytes_in(static_cast<TierId>(1)), kMiB);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 2 * kMiB);
}

TEST(HotData, HotDataDisplacesColderData) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 0, 10), tier(1, 64 * kMiB, 64 * kMiB, 0)};
  const Placement placement = HotData().solve(tiers, request_of(kMiB, 12));
  ASSERT_EQ(placement.count, 2u);
  EXPECT_EQ(placement.steps[0].kind, PlacementStep::Kind::kMakeRoom);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), kMiB);
}

TEST(HotData, WithoutAMinimumNothingIsKnownToBeColder) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 0, 0), tier(1, 64 * kMiB, 64 * kMiB, 0)};
  const Placement placement = HotData().solve(tiers, request_of(kMiB, 12));
  ASSERT_EQ(placement.count, 1u);
  EXPECT_EQ(placement.steps[0].tier, static_cast<TierId>(1));
}

TEST(HotnessThresholds, TheHottestUnitsFillEachTierInTurn) {
  std::vector<TierView> tiers = {tier(0, 10 * kMiB, 0, 99), tier(1, 20 * kMiB, 0, 99),
                                 tier(2, 100 * kMiB, 0, 99)};
  std::vector<HotUnit> units = {{1, 50 * kMiB}, {8, 6 * kMiB}, {3, 10 * kMiB}, {20, 8 * kMiB}};
  hotness_thresholds(units, tiers);
  // 8 MiB of 20 and the first of 8 end in memory, the rest of these, 3 and the first of 1 below.
  EXPECT_EQ(tiers[0].hotness_min, 8);
  EXPECT_EQ(tiers[1].hotness_min, 1);
  EXPECT_EQ(tiers[2].hotness_min, 0);
}

// All are as hot as the minimum of the fastest tier: it must not become the home of all.
TEST(HotnessThresholds, OfEquallyHotUnitsTheSmallestLieHighest) {
  std::vector<TierView> tiers = {tier(0, 10 * kMiB, 0, 99), tier(1, 20 * kMiB, 0, 99),
                                 tier(2, 100 * kMiB, 0, 99)};
  std::vector<HotUnit> units = {
      {5, 40 * kMiB, 1}, {5, 4 * kMiB, 2}, {5, 5 * kMiB, 3}, {5, 6 * kMiB, 4}, {5, 1 * kMiB, 5}};
  hotness_thresholds(units, tiers);
  for (const HotUnit& unit : units) {
    const unsigned expected = unit.id == 1 ? 1 : unit.id == 4 ? 1 : 0;
    EXPECT_EQ(raw(unit.home), expected) << unit.id;
  }
  std::vector<HotUnit> one = {{5, 40 * kMiB, 1}};
  hotness_thresholds(one, tiers);
  EXPECT_EQ(one[0].home, TierId::kMemory) << "nobody else wants the tier";
}

TEST(HotnessThresholds, WhatFitsIsNotRationed) {
  std::vector<TierView> tiers = {tier(0, 10 * kMiB, 0, 99), tier(1, 20 * kMiB, 0, 99)};
  std::vector<HotUnit> units = {{1, 6 * kMiB}, {8, 4 * kMiB}};
  hotness_thresholds(units, tiers);
  EXPECT_EQ(tiers[0].hotness_min, 0);
  EXPECT_EQ(tiers[1].hotness_min, 0);
  hotness_thresholds({}, tiers);
  EXPECT_EQ(tiers[0].hotness_min, 0);
}

TEST(HotnessThresholds, TheReserveIsNobodys) {
  std::vector<TierView> tiers = {tier(0, 10 * kMiB, 0, 0), tier(1, 20 * kMiB, 0, 0)};
  tiers[0].reserve_bytes = kMiB;
  std::vector<HotUnit> units = {{2, 10 * kMiB}};
  hotness_thresholds(units, tiers);
  EXPECT_EQ(tiers[0].hotness_min, 2);
  EXPECT_EQ(tiers[1].hotness_min, 0);
}

// A unit whose hotness follows its thresholds finds its home where the knapsack has it.
TEST(HotnessThresholds, MinimaDescend) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  for (int round = 0; round < 1000; ++round) {
    auto tiers = random.tiers(6, 40);
    std::vector<HotUnit> units(random.below(30));
    for (HotUnit& unit : units) {
      unit = {static_cast<double>(random.below(50)), random.below(20) * kBlockBytes};
    }
    hotness_thresholds(units, tiers);
    for (std::size_t at = 1; at < tiers.size(); ++at) {
      ASSERT_LE(tiers[at].hotness_min, tiers[at - 1].hotness_min) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace cairn
