// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/array_board.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

namespace cairn {
namespace {

ArrayName name_of(std::uint64_t number) { return {ObjectIndex{7}, {number, ~number}}; }

GridNumbers grid_of(std::uint64_t number) {
  GridNumbers grid;
  grid.dimensions = 2;
  for (GridNumbers::Row& row : grid.rows) row = {number, number};
  return grid;
}

TEST(ArrayBoard, AGridIsFoundByTheNameOfItsArray) {
  const auto board = std::make_unique<ArrayBoard>();
  GridNumbers found;
  EXPECT_FALSE(board->find(name_of(1), &found));
  board->publish(name_of(1), grid_of(10));
  board->publish(name_of(2), grid_of(20));
  board->publish(name_of(1), grid_of(11));
  ASSERT_TRUE(board->find(name_of(1), &found));
  EXPECT_EQ(found.dimensions, 2u);
  EXPECT_EQ(found.rows, grid_of(11).rows);
  ASSERT_TRUE(board->find(name_of(2), &found));
  EXPECT_EQ(found.rows, grid_of(20).rows);
  EXPECT_FALSE(board->find({ObjectIndex{8}, name_of(1).words}, &found)) << "another file's";
}

TEST(ArrayBoard, TheLatestOfMoreArraysThanItHasRoomForAreKnown) {
  const auto board = std::make_unique<ArrayBoard>();
  constexpr std::uint64_t kArrays = 3 * ArrayBoard::kGridsMax;
  for (std::uint64_t number = 1; number <= kArrays; ++number)
    board->publish(name_of(number), grid_of(number));
  GridNumbers found;
  for (std::uint64_t number = kArrays - ArrayBoard::kGridsMax + 1; number <= kArrays; ++number) {
    ASSERT_TRUE(board->find(name_of(number), &found)) << number;
    EXPECT_EQ(found.rows, grid_of(number).rows);
  }
}

TEST(ArrayBoard, AReaderNeverSeesHalfOfAChange) {
  const auto board = std::make_unique<ArrayBoard>();
  std::atomic<bool> is_over{false};
  std::thread publisher([&] {
    for (std::uint64_t number = 1; !is_over.load(); ++number)
      board->publish(name_of(1), grid_of(number));
  });
  unsigned seen = 0;
  for (unsigned look = 0; look < 200'000 || (seen == 0 && look < 20'000'000); ++look) {
    GridNumbers found;
    if (!board->find(name_of(1), &found)) continue;
    ++seen;
    ASSERT_EQ(found.rows, grid_of(found.rows[0][0]).rows);
  }
  is_over.store(true);
  publisher.join();
  EXPECT_NE(seen, 0u);
}

}  // namespace
}  // namespace cairn
