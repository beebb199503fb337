// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_watch.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn::node {
namespace {

using arrays::Box;
using arrays::ChunkGrid;
using arrays::ChunkShape;
using arrays::Coordinates;
using arrays::GhostWidth;

// Four ranks go through an array in chunks with a ghost zone, a batch at a time: from the second
// batch on, each box is expected before it is read. (ARCHIE, section IV; its user says the shape.)
struct Ranks {
  static constexpr std::uint64_t kRanks = 4;

  Ranks(const Coordinates& shape, const Coordinates& chunk, std::uint64_t ghost)
      : grid(*ChunkGrid::of(shape, {chunk, GhostWidth::around(Coordinates(shape.size(), ghost)),
                                    Coordinates(shape.size(), 0)})),
        watch({shape, 4, 2048}) {}

  // How many boxes of the batches behind the first had been expected.
  std::uint64_t expected_of_all(const std::vector<std::uint64_t>& order) {
    std::uint64_t count = 0;
    for (std::uint64_t first = 0; first < grid.chunks(); first += kRanks) {
      for (const std::uint64_t rank : order) {
        if (first + rank >= grid.chunks()) continue;
        const Box box = grid.with_ghost(first + rank);
        if (std::erase(expected, box) != 0 && first != 0) ++count;
        for (const Box& next : watch.observe(rank + 10, box)) expected.push_back(next);
      }
    }
    return count;
  }

  ChunkGrid grid;
  ArrayWatch watch;
  std::vector<Box> expected;
};

TEST(ArrayWatch, FromTheSecondBatchOnEachBoxIsExpected) {
  const std::vector<std::vector<std::uint64_t>> orders = {
      {0, 1, 2, 3}, {3, 2, 1, 0}, {0, 3, 1, 2}, {2, 0, 3, 1}};
  for (const auto& order : orders) {
    Ranks plane({8192, 8192}, {2048, 2048}, 1);
    EXPECT_EQ(plane.expected_of_all(order), 12u);
    Ranks stripes({31, 768, 1152}, {31, 768, 32}, 0);
    EXPECT_EQ(stripes.expected_of_all(order), 32u);
    Ranks field({320, 320, 320}, {40, 40, 40}, 1);
    EXPECT_GE(field.expected_of_all(order), 508u - 4u);
  }
}

TEST(ArrayWatch, WhatWasReadAlreadyIsNotExpected) {
  Ranks plane({8192, 8192}, {2048, 2048}, 1);
  (void)plane.expected_of_all({0, 1, 2, 3});
  EXPECT_TRUE(plane.expected.empty()) << plane.expected.size();
}

TEST(ArrayWatch, TheSecondReadOfABoxShowsThatItIsReadAgain) {
  Ranks plane({8192, 8192}, {2048, 2048}, 1);
  (void)plane.expected_of_all({0, 1, 2, 3});
  EXPECT_FALSE(plane.watch.is_read_again());
  EXPECT_TRUE(plane.watch.take_new_grid());
  EXPECT_FALSE(plane.watch.take_new_grid());
  (void)plane.watch.observe(11, plane.grid.with_ghost(2));
  EXPECT_TRUE(plane.watch.is_read_again());
  EXPECT_FALSE(plane.watch.take_new_grid()) << "it has taught nothing new";
}

ChunkGrid grid_of(std::uint64_t side) {
  return *ChunkGrid::of({4096, 4096}, ChunkShape::plain({side, side}));
}

TEST(ArrayWatch, EarlierGridsAreKeptOnceAndTheEarliestAreForgotten) {
  ArrayWatch watch({{4096, 4096}, 8, 0});
  watch.expect(grid_of(4096));
  const auto read_all = [&](std::uint64_t side) {
    const ChunkGrid grid = grid_of(side);
    for (std::uint64_t number = 0; number < grid.chunks(); ++number)
      (void)watch.observe(1, grid.chunk(number));
    EXPECT_EQ(watch.grid()->shape(), grid.shape()) << side;
  };
  const auto times_kept = [&](std::uint64_t side) {
    return std::ranges::count_if(watch.earlier_grids(), [&](const ChunkGrid& each) {
      return each.shape() == grid_of(side).shape();
    });
  };
  read_all(512);
  EXPECT_EQ(times_kept(4096), 1);
  EXPECT_EQ(times_kept(512), 0) << "it is the present one";
  read_all(256);
  EXPECT_EQ(times_kept(512), 1);
  EXPECT_EQ(times_kept(256), 0);
  for (const std::uint64_t side : {128U, 64U, 32U}) read_all(side);
  EXPECT_EQ(times_kept(4096), 0);
  EXPECT_LE(watch.earlier_grids().size(), 8u);
}

TEST(ArrayWatch, WhatIsExpectedLaterCountsUntilABoxHasShownIt) {
  ArrayWatch watch({{4096, 4096}, 8, 0});
  watch.expect(grid_of(512));
  watch.expect(grid_of(256));
  EXPECT_EQ(watch.grid()->shape(), grid_of(256).shape());
  EXPECT_TRUE(watch.earlier_grids().empty());
  EXPECT_FALSE(watch.take_shown_grid()) << "nobody has read a box";
  (void)watch.observe(1, grid_of(256).chunk(0));
  EXPECT_TRUE(watch.take_shown_grid());
  EXPECT_FALSE(watch.take_shown_grid());
  watch.expect(grid_of(512));
  EXPECT_EQ(watch.grid()->shape(), grid_of(256).shape());
}

TEST(ArrayWatch, ReadsInNoOrderCauseNothing) {
  ArrayWatch watch({{4096, 4096}, 8, 0});
  std::size_t expected = 0;
  std::uint64_t random = 1;
  const auto next = [&random](std::uint64_t end) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (random >> 33) % end;
  };
  for (int read = 0; read < 2000; ++read) {
    const Coordinates count{1 + next(500), 1 + next(500)};
    const Coordinates first{next(4096 - count[0]), next(4096 - count[1])};
    expected += watch.observe(1, {first, count}).size();
  }
  EXPECT_LT(expected, 50u);
}

}  // namespace
}  // namespace cairn::node
