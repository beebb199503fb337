// SPDX-License-Identifier: Apache-2.0
// Max-bandwidth and its paper form against trying every placement, with the costs written out anew.
#include "policy/placement/max_bandwidth.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>

#include "policy/placement/testing/exhaustive_search.h"
#include "policy/placement/testing/random_views.h"

namespace cairn {
namespace {

using testing::ExhaustiveSearch;
using testing::RandomViews;
using testing::SearchCosts;
using testing::SearchTier;

constexpr std::uint32_t kSeed = 90210;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr double kGB = 1e9;

double time_of(double bandwidth, double latency, std::uint64_t bytes) {
  return latency + static_cast<double>(bytes) / bandwidth;
}
double paper_cost_of(double bandwidth, double latency, std::uint64_t bytes) {
  return static_cast<double>(bytes) / bandwidth * latency;
}

using CostOf = double (*)(double, double, std::uint64_t);

struct Instance {
  std::vector<TierView> tiers;
  PlacementRequest request;
};

Instance random_instance(RandomViews& random) {
  Instance instance;
  instance.tiers = random.tiers(4, 8);
  instance.request = random.request(instance.tiers, (1 + random.below(8)) * kBlockBytes);
  return instance;
}

double least_cost(const Instance& instance, CostOf cost_of, double store_per_block) {
  std::vector<TierView> allowed;
  std::vector<SearchTier> rooms;
  for (const TierView& tier : instance.tiers) {
    if (tier.id < instance.request.fastest) continue;
    allowed.push_back(tier);
    const std::uint64_t used = tier.capacity_bytes - tier.free_bytes;
    rooms.push_back({static_cast<unsigned>(tier.usable_bytes() / kBlockBytes),
                     static_cast<unsigned>(used / kBlockBytes)});
  }
  SearchCosts costs;
  costs.place = [&](std::size_t at, unsigned blocks) {
    const TierView& tier = allowed[at];
    return cost_of(tier.bandwidth, tier.latency + tier.backlog, blocks * kBlockBytes);
  };
  costs.move = [&](std::size_t at, unsigned blocks) {
    return instance.request.move_share * costs.place(at, blocks);
  };
  costs.store = [&](unsigned blocks) {
    const PlacementRequest& request = instance.request;
    if (request.store_bandwidth == 0) return store_per_block * blocks;
    return cost_of(request.store_bandwidth, request.store_latency, blocks * kBlockBytes);
  };
  return ExhaustiveSearch(rooms, costs)
      .least_cost(static_cast<unsigned>(instance.request.bytes / kBlockBytes));
}

void expect_optimal_with_a_known_store(const MaxBandwidth& policy, CostOf cost_of) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  int with_room = 0;
  int some_stored = 0;
  for (int round = 0; round < 2000; ++round) {
    Instance instance = random_instance(random);
    instance.request.store_bandwidth = 1e6 * (1 + random.below(1000));
    instance.request.store_latency = 1e-6 * (1 + random.below(10000));
    const Placement placement = policy.solve(instance.tiers, instance.request);
    const double least = least_cost(instance, cost_of, 0);
    ASSERT_NEAR(placement.seconds, least, 1e-9 * least) << "round " << round;
    with_room += placement.count > 0 && placement.steps[0].kind == PlacementStep::Kind::kMakeRoom;
    some_stored += placement.placed_bytes() < instance.request.bytes ? 1 : 0;
  }
  EXPECT_GT(with_room, 20);
  EXPECT_GT(some_stored, 50);
}

TEST(MaxBandwidth, IsTheOptimumWithAKnownStore) {
  expect_optimal_with_a_known_store(MaxBandwidth(), time_of);
}

TEST(MaxBandwidthPaper, IsTheOptimumWithAKnownStore) {
  expect_optimal_with_a_known_store(MaxBandwidth("paper", paper_cost_of_access), paper_cost_of);
}

// What an unknown store costs is the policy's own affair: all that has room must be placed, and
// that in the least time.
TEST(MaxBandwidth, IsTheOptimumWithAnUnknownStore) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed + 1);
  // So much per block that nothing is left to the store for time's sake.
  constexpr double kPerBlock = 1e6;
  for (int round = 0; round < 2000; ++round) {
    const Instance instance = random_instance(random);
    const Placement placement = MaxBandwidth().solve(instance.tiers, instance.request);
    const std::uint64_t unplaced = instance.request.bytes - placement.placed_bytes();
    const double unplaced_blocks = static_cast<double>(unplaced / kBlockBytes);
    const double least = least_cost(instance, time_of, kPerBlock);
    EXPECT_EQ(std::floor(least / kPerBlock), unplaced_blocks) << "round " << round;
    if (unplaced != 0) continue;
    ASSERT_NEAR(placement.seconds, least, 1e-9 * least) << "round " << round;
  }
}

TierView tier(unsigned id, std::uint64_t capacity, std::uint64_t free, double bandwidth,
              double latency) {
  return TierView{static_cast<TierId>(id), capacity, free, 0, bandwidth, latency};
}

TEST(MaxBandwidth, SmallWritesPreferTheLowLatencyAndLargeOnesTheHighBandwidth) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB, 1 * kGB, 1e-6),
                                       tier(1, 64 * kMiB, 64 * kMiB, 4 * kGB, 1e-3)};
  EXPECT_EQ(MaxBandwidth().choose(tiers, PlacementRequest{kBlockBytes}), TierId::kMemory);
  EXPECT_EQ(MaxBandwidth().choose(tiers, PlacementRequest{32 * kMiB}), static_cast<TierId>(1));
}

TEST(MaxBandwidth, SplitsUnlessTheDetourIsShorter) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, kMiB, 4 * kGB, 1e-3),
                                       tier(1, 64 * kMiB, 64 * kMiB, 2 * kGB, 1e-5)};
  // A millisecond to save a quarter of one.
  EXPECT_EQ(MaxBandwidth().solve(tiers, PlacementRequest{2 * kMiB}).bytes_in(TierId::kMemory), 0u);
  std::vector<TierView> quicker = tiers;
  quicker[0].latency = 1e-6;
  EXPECT_EQ(MaxBandwidth().solve(quicker, PlacementRequest{2 * kMiB}).bytes_in(TierId::kMemory),
            kMiB);
}

TEST(MaxBandwidth, OfEqualTiersTheUpperOneIsTaken) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, 64 * kMiB, kGB, 0),
                                       tier(1, 64 * kMiB, 64 * kMiB, kGB, 0)};
  const MaxBandwidth paper("paper", paper_cost_of_access);
  EXPECT_EQ(MaxBandwidth().choose(tiers, PlacementRequest{8 * kMiB}), TierId::kMemory);
  EXPECT_EQ(paper.choose(tiers, PlacementRequest{8 * kMiB}), TierId::kMemory);
}

TEST(MaxBandwidth, DevicesShareTheWorkByWhatTheyStillHaveToDo) {
  std::vector<TierView> tiers = {tier(0, 640 * kMiB, 640 * kMiB, 4 * kGB, 1e-5),
                                 tier(1, 640 * kMiB, 640 * kMiB, 1 * kGB, 1e-5)};
  std::array<unsigned, 2> requests{};
  for (int request = 0; request < 100; ++request) {
    const auto target = MaxBandwidth().choose(tiers, PlacementRequest{kMiB});
    ASSERT_TRUE(target.has_value());
    ++requests[raw(*target)];
    tiers[raw(*target)].backlog += static_cast<double>(kMiB) / tiers[raw(*target)].bandwidth;
  }
  EXPECT_NEAR(requests[0], 80, 2) << "four fifths of the bandwidth";
  EXPECT_NEAR(tiers[0].backlog, tiers[1].backlog, 2e-3);
}

TEST(MaxBandwidth, RoomIsMadeWhenTheOrganizerMovesMeanwhile) {
  const std::vector<TierView> tiers = {tier(0, 64 * kMiB, kMiB, 8 * kGB, 1e-7),
                                       tier(1, 64 * kMiB, 64 * kMiB, 1 * kGB, 1e-5)};
  PlacementRequest request{2 * kMiB};
  EXPECT_EQ(MaxBandwidth().solve(tiers, request).steps[0].kind, PlacementStep::Kind::kPlace);
  request.move_share = 0.25;
  const Placement placement = MaxBandwidth().solve(tiers, request);
  ASSERT_EQ(placement.count, 2u);
  EXPECT_EQ(placement.steps[0].kind, PlacementStep::Kind::kMakeRoom);
  EXPECT_EQ(placement.steps[0].bytes, kMiB);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 2 * kMiB);
  // Nothing can be moved where nothing below has room.
  std::vector<TierView> full = tiers;
  full[1].free_bytes = kMiB / 2;
  EXPECT_EQ(MaxBandwidth().solve(full, request).steps[0].kind, PlacementStep::Kind::kPlace);
}

}  // namespace
}  // namespace cairn
