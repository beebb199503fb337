// SPDX-License-Identifier: Apache-2.0
// The dynamic programme against trying everything, and what it does beyond: granules, leftovers.
#include "policy/placement/placement_solver.h"

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

constexpr std::uint32_t kSeed = 42117;

double random_cost(RandomViews& random) {
  return random.below(3) == 0 ? 0 : random.below(1000) / 100.0;
}

PlacementProblem random_problem(RandomViews& random) {
  PlacementProblem problem;
  problem.bytes = (1 + random.below(7)) * kBlockBytes;
  problem.count = 1 + random.below(4);
  problem.room_cost = random_cost(random);
  const double per_block = 1.0 / kBlockBytes;
  problem.store = {random_cost(random), 3 * random_cost(random) * per_block};
  for (std::size_t at = 0; at < problem.count; ++at) {
    SolverTier& tier = problem.tiers[at];
    tier.id = static_cast<TierId>(at);
    tier.usable_bytes = random.below(6) * kBlockBytes + random.below(2) * 4096;
    tier.movable_bytes = random.below(6) * kBlockBytes;
    tier.place = {random_cost(random), random_cost(random) * per_block};
    tier.move = {random_cost(random) / 4, random_cost(random) / 4 * per_block};
  }
  return problem;
}

double least_cost(const PlacementProblem& problem) {
  std::vector<SearchTier> tiers;
  for (std::size_t at = 0; at < problem.count; ++at) {
    tiers.push_back({static_cast<unsigned>(problem.tiers[at].usable_bytes / kBlockBytes),
                     static_cast<unsigned>(problem.tiers[at].movable_bytes / kBlockBytes)});
  }
  SearchCosts costs;
  costs.place = [&](std::size_t at, unsigned blocks) {
    return problem.tiers[at].place.of(blocks * kBlockBytes);
  };
  costs.move = [&](std::size_t at, unsigned blocks) {
    return problem.tiers[at].move.of(blocks * kBlockBytes);
  };
  costs.store = [&](unsigned blocks) { return problem.store.of(blocks * kBlockBytes); };
  costs.room = problem.room_cost;
  return ExhaustiveSearch(tiers, costs)
      .least_cost(static_cast<unsigned>(problem.bytes / kBlockBytes));
}

TEST(PlacementSolver, FindsWhatTryingEverythingFinds) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  RandomViews random(kSeed);
  int with_rooms = 0;
  int divided = 0;
  for (int round = 0; round < 4000; ++round) {
    const PlacementProblem problem = random_problem(random);
    const Placement placement = solve_placement(problem);
    ASSERT_NEAR(placement.seconds, least_cost(problem), 1e-9) << "round " << round;
    int rooms = 0;
    int places = 0;
    for (const PlacementStep& step : placement.all()) {
      ++(step.kind == PlacementStep::Kind::kMakeRoom ? rooms : places);
    }
    with_rooms += rooms > 0 ? 1 : 0;
    divided += places > 1 ? 1 : 0;
  }
  // The instances are worth something only if they reach every option.
  EXPECT_GT(with_rooms, 100);
  EXPECT_GT(divided, 200);
}

PlacementProblem two_tiers(std::uint64_t bytes, std::uint64_t first, std::uint64_t second) {
  PlacementProblem problem;
  problem.bytes = bytes;
  problem.count = 2;
  problem.tiers[0] = {TierId::kMemory, first, 0, {0, 1e-9}, {0, 1e-9}};
  problem.tiers[1] = {static_cast<TierId>(1), second, 0, {0, 1e-8}, {0, 1e-8}};
  problem.store = slower_than_any_tier(problem);
  return problem;
}

TEST(PlacementSolver, CountsInBlocksAndAtMost64PerRequest) {
  EXPECT_EQ(granule_of(1), 1u);
  EXPECT_EQ(granule_of(kBlockBytes), kBlockBytes);
  EXPECT_EQ(granule_of(kBlockBytes + 1), kBlockBytes);
  EXPECT_EQ(granule_of(64 * kBlockBytes), kBlockBytes);
  EXPECT_EQ(granule_of(64 * kBlockBytes + 1), 2 * kBlockBytes);
  EXPECT_LE((~std::uint64_t{0} - 1) / granule_of(~std::uint64_t{0}) + 1, kGranulesMax);
}

TEST(PlacementSolver, DoesNotDivideABlock) {
  const Placement placement =
      solve_placement(two_tiers(kBlockBytes, kBlockBytes - 4096, 4 * kBlockBytes));
  ASSERT_EQ(placement.count, 1u);
  EXPECT_EQ(placement.steps[0].tier, static_cast<TierId>(1));
}

TEST(PlacementSolver, TheLastPieceIsAsLongAsTheRequest) {
  const Placement placement =
      solve_placement(two_tiers(3 * kBlockBytes + 100, 2 * kBlockBytes, 8 * kBlockBytes));
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 2 * kBlockBytes);
  EXPECT_EQ(placement.bytes_in(static_cast<TierId>(1)), kBlockBytes + 100);
}

TEST(PlacementSolver, RoomSmallerThanAGranuleIsUsedBeforeTheStore) {
  // 256 blocks are counted in fours: three blocks of room in each tier are less than one of these.
  const Placement placement =
      solve_placement(two_tiers(256 * kBlockBytes, 103 * kBlockBytes, 7 * kBlockBytes));
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 103 * kBlockBytes);
  EXPECT_EQ(placement.bytes_in(static_cast<TierId>(1)), 7 * kBlockBytes);
}

TEST(PlacementSolver, LeavesToTheStoreWhatItTakesForLess) {
  PlacementProblem problem = two_tiers(4 * kBlockBytes, 2 * kBlockBytes, 8 * kBlockBytes);
  problem.store = {0, 5e-9};
  const Placement placement = solve_placement(problem);
  EXPECT_EQ(placement.placed_bytes(), 2 * kBlockBytes);
  EXPECT_NEAR(placement.seconds, 2 * kBlockBytes * 6e-9, 1e-12);
}

TEST(PlacementSolver, MakesRoomWhereMovingIsCheaperThanTheDetour) {
  PlacementProblem problem = two_tiers(4 * kBlockBytes, kBlockBytes, 8 * kBlockBytes);
  problem.tiers[0].movable_bytes = 3 * kBlockBytes;
  problem.tiers[1].move.per_byte = 1e-10;
  const Placement placement = solve_placement(problem);
  ASSERT_EQ(placement.count, 2u);
  EXPECT_EQ(placement.steps[0].kind, PlacementStep::Kind::kMakeRoom);
  EXPECT_EQ(placement.steps[0].bytes, 3 * kBlockBytes);
  EXPECT_EQ(placement.bytes_in(TierId::kMemory), 4 * kBlockBytes);
  EXPECT_NEAR(placement.seconds, kBlockBytes * (4e-9 + 3e-10), 1e-12);

  problem.tiers[0].movable_bytes = 2 * kBlockBytes;
  EXPECT_EQ(solve_placement(problem).steps[0].kind, PlacementStep::Kind::kPlace);
  problem.tiers[0].movable_bytes = 3 * kBlockBytes;
  problem.tiers[1].usable_bytes = 2 * kBlockBytes;
  EXPECT_EQ(solve_placement(problem).steps[0].kind, PlacementStep::Kind::kPlace);
}

}  // namespace
}  // namespace cairn
