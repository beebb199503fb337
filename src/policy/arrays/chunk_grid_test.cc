// SPDX-License-Identifier: Apache-2.0
// Chunks and their ghost zones, against a look at every cell of small arrays.
#include "policy/arrays/chunk_grid.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "policy/arrays/testing/small_arrays.h"

namespace cairn::arrays {
namespace {

template <typename Visit>
void for_each_cell(const Box& box, Visit&& visit) {
  if (box.is_empty()) return;
  Coordinates cell = box.first;
  do {
    visit(cell);
  } while (next_place(box, &cell));
}

Box one(const Coordinates& cell) { return {cell, Coordinates(cell.size(), 1)}; }

std::set<std::uint64_t> numbers(const ChunkGrid& grid, const Box& places) {
  std::set<std::uint64_t> found;
  grid.for_each(places, [&](std::uint64_t number) { found.insert(number); });
  return found;
}

TEST(ChunkGrid, ThePapersArrayOfFourChunksWithGhosts) {
  ChunkShape shape = ChunkShape::plain({4, 4});
  shape.ghost = GhostWidth::around({1, 1});
  const auto grid = ChunkGrid::of({8, 8}, shape);
  ASSERT_TRUE(grid.is_ok());
  EXPECT_EQ(grid->chunks(), 4U);
  EXPECT_EQ(grid->chunk(3), (Box{{4, 4}, {4, 4}}));
  EXPECT_EQ(grid->with_ghost(0), (Box{{0, 0}, {5, 5}}));
  EXPECT_EQ(grid->with_ghost(3), (Box{{3, 3}, {5, 5}}));
}

TEST(ChunkGrid, EveryCellIsInOneChunkAndGhostsAreSeen) {
  constexpr unsigned kSeed = 20261126;
  std::mt19937 random(kSeed);
  for (int turn = 0; turn < 400; ++turn) {
    const testing::SmallArray made = testing::draw(random);
    SCOPED_TRACE("turn " + std::to_string(turn) + ", seed " + std::to_string(kSeed));
    const auto grid = ChunkGrid::of(made.array, made.shape);
    ASSERT_TRUE(grid.is_ok()) << grid.status().message();
    std::uint64_t cells = 0;
    for (std::uint64_t number = 0; number < grid->chunks(); ++number) {
      const Box chunk = grid->chunk(number);
      ASSERT_FALSE(chunk.is_empty());
      ASSERT_TRUE(whole(made.array).contains(chunk));
      ASSERT_TRUE(grid->with_ghost(number).contains(chunk));
      ASSERT_EQ(grid->number_at(grid->place_of(number)), number);
      cells += *chunk.cells();
      for_each_cell(chunk,
                    [&](const Coordinates& cell) { ASSERT_EQ(grid->number_of(cell), number); });
    }
    ASSERT_EQ(cells, *whole(made.array).cells());
    std::set<std::uint64_t> in;
    std::set<std::uint64_t> seen_by;
    for_each_cell(made.box, [&](const Coordinates& cell) {
      for (std::uint64_t number = 0; number < grid->chunks(); ++number) {
        if (grid->chunk(number).contains(one(cell))) in.insert(number);
        if (grid->with_ghost(number).contains(one(cell))) seen_by.insert(number);
      }
    });
    ASSERT_EQ(numbers(*grid, grid->chunks_of(made.box)), in);
    ASSERT_EQ(numbers(*grid, grid->chunks_that_see(made.box)), seen_by);
  }
}

TEST(ChunkGrid, AChunkBeginsAtTheOrigin) {
  ChunkShape shape = ChunkShape::plain({10});
  shape.origin = {24};
  const auto grid = ChunkGrid::of({100}, shape);
  ASSERT_TRUE(grid.is_ok());
  EXPECT_EQ(grid->chunk(0), (Box{{0}, {4}}));
  EXPECT_EQ(grid->chunk(grid->number_of({24})), (Box{{24}, {10}}));
  EXPECT_EQ(grid->chunks(), 11U);
}

TEST(ChunkGrid, MistakesAreNamed) {
  const auto message_of = [](const ChunkShape& shape) {
    const auto grid = ChunkGrid::of({100, 10}, shape);
    EXPECT_EQ(grid.status().code(), StatusCode::kInvalid);
    return grid.status().message();
  };
  EXPECT_EQ(message_of(ChunkShape::plain({10})),
            "the array has 2 dimensions; give as many numbers");
  EXPECT_EQ(message_of(ChunkShape::plain({10, 0})),
            "chunk of 0 cells in dimension 1: give it at least 1");
  EXPECT_EQ(message_of(ChunkShape::plain({101, 10})),
            "chunk of 101 cells in dimension 0: the array has 100");
  ChunkShape wide = ChunkShape::plain({10, 2});
  wide.ghost = GhostWidth::around({1, 3});
  EXPECT_EQ(message_of(wide),
            "ghost zone of 3 cells in dimension 1: it is wider than a chunk, which has 2");
  ChunkShape outside = ChunkShape::plain({10, 2});
  outside.origin = {0, 10};
  EXPECT_EQ(message_of(outside), "origin 10 in dimension 1: the array has 10 cells");
}

}  // namespace
}  // namespace cairn::arrays
