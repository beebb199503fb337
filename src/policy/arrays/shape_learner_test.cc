// SPDX-License-Identifier: Apache-2.0
// What is learned from reads as programs make them, against what they were made by.
#include "policy/arrays/shape_learner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace cairn::arrays {
namespace {

ChunkShape shape_of(const Coordinates& chunk, const Coordinates& before,
                    const Coordinates& behind) {
  ChunkShape shape = ChunkShape::plain(chunk);
  shape.ghost = {before, behind};
  return shape;
}

// The first `reads` chunks of the array, in that order of their numbers.
ChunkShape learned(const Coordinates& array, const ChunkShape& shape,
                   const std::vector<std::uint64_t>& order) {
  const auto grid = ChunkGrid::of(array, shape);
  EXPECT_TRUE(grid.is_ok()) << grid.status().message();
  ShapeLearner learner(array);
  for (const std::uint64_t number : order) learner.observe(grid->with_ghost(number));
  const auto found = learner.shape();
  EXPECT_TRUE(found.has_value());
  EXPECT_TRUE(ChunkGrid::of(array, *found).is_ok());
  return *found;
}

std::vector<std::uint64_t> first_chunks(std::uint64_t count) {
  std::vector<std::uint64_t> order(count);
  for (std::uint64_t at = 0; at < count; ++at) order[at] = at;
  return order;
}

TEST(ShapeLearner, TheConvolutionOfThePaperFromItsFirstTwoRows) {
  const Coordinates array{16384, 16384};
  const ChunkShape told = shape_of({2048, 2048}, {1, 1}, {1, 1});
  EXPECT_EQ(learned(array, told, first_chunks(16)), told);
  // The first row alone does not show the width across it, which is supposed to be the same.
  EXPECT_EQ(learned(array, told, first_chunks(4)), told);
}

TEST(ShapeLearner, ProcessesInAnyOrder) {
  const Coordinates array{2000, 2000, 800};
  const ChunkShape told = shape_of({250, 250, 100}, {1, 1, 1}, {1, 1, 1});
  std::vector<std::uint64_t> order = first_chunks(128);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  EXPECT_EQ(learned(array, told, order), told);
}

TEST(ShapeLearner, AWholeDimensionIsOneChunk) {
  const Coordinates array{31, 768, 1152};
  const ChunkShape told = shape_of({31, 768, 32}, {0, 0, 0}, {0, 0, 0});
  EXPECT_EQ(learned(array, told, first_chunks(4)), told);
}

TEST(ShapeLearner, WindowsThatOverlapTheNextOne) {
  const Coordinates array{1000, 40};
  EXPECT_EQ(learned(array, shape_of({8, 40}, {0, 0}, {2, 0}), first_chunks(6)),
            shape_of({8, 40}, {0, 0}, {2, 0}));
}

TEST(ShapeLearner, AProgramThatBeginsInTheMiddle) {
  ChunkShape told = shape_of({100}, {0}, {0});
  told.origin = {30};
  const auto grid = ChunkGrid::of({10000}, told);
  ShapeLearner learner({10000});
  for (std::uint64_t number = 40; number < 46; ++number) learner.observe(grid->chunk(number));
  EXPECT_EQ(*learner.shape(), told);
}

TEST(ShapeLearner, EveryFourthChunkOfOneProcess) {
  ShapeLearner learner({1U << 20});
  for (std::uint64_t turn = 1; turn < 8; ++turn) learner.observe({{turn * 4096}, {1024}});
  EXPECT_EQ(*learner.shape(), ChunkShape::plain({1024}));
}

TEST(ShapeLearner, WhatHasNoOrderIsTakenAsItComes) {
  std::mt19937 random(5);
  ShapeLearner learner({100000});
  for (int turn = 0; turn < 50; ++turn) learner.observe({{1 + random() % 90000}, {500}});
  EXPECT_EQ(learner.shape()->chunk, Coordinates({500}));
  EXPECT_TRUE(learner.shape()->ghost.is_none());
}

TEST(ShapeLearner, NothingIsBelievedAtOnce) {
  ShapeLearner learner({100});
  learner.observe({{0}, {10}});
  learner.observe({{10}, {10}});
  EXPECT_FALSE(learner.shape().has_value());
  learner.observe({{20}, {10}});
  EXPECT_EQ(*learner.shape(), ChunkShape::plain({10}));
}

// Whatever comes, a grid can be made of it.
TEST(ShapeLearner, AnyReadsMakeAGrid) {
  constexpr unsigned kSeed = 1126;
  std::mt19937 random(kSeed);
  for (int turn = 0; turn < 2000; ++turn) {
    const Coordinates array{1 + random() % 30, 1 + random() % 30};
    ShapeLearner learner(array);
    for (int read = 0; read < 8; ++read) {
      Box box{Coordinates(2, 0), Coordinates(2, 1)};
      for (std::size_t at = 0; at < 2; ++at) {
        box.first[at] = random() % array[at];
        box.count[at] = 1 + random() % (array[at] - box.first[at]);
      }
      learner.observe(box);
    }
    const auto grid = ChunkGrid::of(array, *learner.shape());
    ASSERT_TRUE(grid.is_ok()) << grid.status().message() << ", turn " << turn << ", seed " << kSeed;
  }
}

}  // namespace
}  // namespace cairn::arrays
