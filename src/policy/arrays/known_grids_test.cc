// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/known_grids.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace cairn::arrays {
namespace {

ChunkShape tiles(std::uint64_t cells, std::uint64_t ghost) {
  ChunkShape shape = ChunkShape::plain({cells, cells});
  shape.ghost = GhostWidth::around({ghost, ghost});
  return shape;
}

ArrayLooks square(std::uint64_t cells) { return {{cells, cells}, 4, {}}; }

TEST(KnownGrids, TheLatestOfArraysThatLookAlikeCounts) {
  KnownGrids grids;
  grids.note(square(64), tiles(8, 1));
  grids.note(square(64), tiles(16, 2));
  EXPECT_EQ(grids.find(square(64))->shape(), tiles(16, 2));
  EXPECT_EQ(grids.size(), 1u);
}

TEST(KnownGrids, AnotherTypeOrLayoutIsAnotherArray) {
  KnownGrids grids;
  grids.note(square(64), tiles(8, 1));
  EXPECT_FALSE(grids.find({{64, 64}, 8, {}}));
  EXPECT_FALSE(grids.find({{64, 64}, 4, {32, 32}}));
  EXPECT_FALSE(grids.find(square(65)));
}

TEST(KnownGrids, OfTooManyTheOldestIsForgotten) {
  KnownGrids grids;
  for (std::uint64_t cells = 8; cells < 9 + KnownGrids::kGridsMax; ++cells)
    grids.note(square(cells), tiles(8, 0));
  EXPECT_EQ(grids.size(), KnownGrids::kGridsMax);
  EXPECT_FALSE(grids.find(square(8)));
  EXPECT_TRUE(grids.find(square(9)));
}

TEST(KnownGrids, OlderOnesComeBehind) {
  KnownGrids older;
  older.note(square(32), tiles(4, 0));
  older.note(square(64), tiles(4, 0));
  KnownGrids grids;
  grids.note(square(64), tiles(8, 1));
  grids.add_older(older);
  EXPECT_EQ(grids.find(square(64))->shape(), tiles(8, 1));
  EXPECT_EQ(grids.find(square(32))->shape(), tiles(4, 0));
}

TEST(KnownGrids, OutlivesANodeAsBytes) {
  KnownGrids grids;
  ChunkShape shape = tiles(8, 1);
  shape.origin = {3, 0};
  shape.ghost.behind = {0, 2};
  grids.note(square(64), shape);
  grids.note({{40, 50, 60}, 8, {10, 10, 10}}, ChunkShape::plain({20, 10, 60}));
  const auto again = KnownGrids::decode(grids.encode());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->size(), 2u);
  EXPECT_EQ(again->find(square(64))->shape(), shape);
  EXPECT_TRUE(again->find({{40, 50, 60}, 8, {10, 10, 10}}));
  EXPECT_EQ(again->encode(), grids.encode());
}

// The value of a file of grids with these numbers of 64 bits behind the head of its only grid.
std::string of_one_grid(std::uint32_t dimensions, std::initializer_list<std::uint64_t> numbers) {
  std::string value;
  append_bytes(&value, std::uint32_t{1});
  append_bytes(&value, std::uint64_t{4});
  append_bytes(&value, std::uint32_t{0});
  append_bytes(&value, dimensions);
  for (const std::uint64_t number : numbers) append_bytes(&value, number);
  return seal(KnownGrids::kKind, value);
}

TEST(KnownGrids, WhatCannotBeIsRefused) {
  EXPECT_TRUE(KnownGrids::decode(of_one_grid(1, {64, 8, 1, 1, 0})));
  EXPECT_FALSE(KnownGrids::decode(of_one_grid(1, {64, 8, 1, 1})));
  EXPECT_FALSE(KnownGrids::decode(of_one_grid(1, {64, 8, 1, 1, 0, 0})));
  EXPECT_FALSE(KnownGrids::decode(of_one_grid(1, {64, 0, 0, 0, 0})));
  EXPECT_FALSE(KnownGrids::decode(of_one_grid(1, {64, 8, 9, 1, 0})));
  EXPECT_FALSE(KnownGrids::decode(of_one_grid(kDimensionsMax + 1, {})));
  EXPECT_EQ(KnownGrids::decode("").status().code(), StatusCode::kInvalid);
}

}  // namespace
}  // namespace cairn::arrays
