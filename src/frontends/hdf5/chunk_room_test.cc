// SPDX-License-Identifier: Apache-2.0
#include "frontends/hdf5/chunk_room.h"

#include <gtest/gtest.h>

namespace cairn::hdf5 {
namespace {

TEST(ChunkRoomTest, ARowOfChunksIsAllThatHaveOneNumberInTheFirstDimension) {
  const auto room = ChunkRoom::of_a_row({4096, 4000}, {1024, 1024}, 4);
  ASSERT_TRUE(room);
  EXPECT_EQ(room->bytes, std::uint64_t{16} << 20);
  EXPECT_EQ(room->places, 2 * 8U);
  EXPECT_EQ(ChunkRoom::of_a_row({1000}, {100}, 8)->bytes, 800U);
}

TEST(ChunkRoomTest, ADatasetThatGrowsBeginsWithNothing) {
  EXPECT_EQ(ChunkRoom::of_a_row({0, 0, 0}, {1, 10, 10}, 1)->bytes, 100U);
}

TEST(ChunkRoomTest, RowsThatAreTooLargeHaveNone) {
  EXPECT_TRUE(ChunkRoom::of_a_row({1, 4096}, {4096, 1024}, 4));
  EXPECT_FALSE(ChunkRoom::of_a_row({1, 4097}, {4096, 1024}, 4)) << "80 MiB";
  EXPECT_FALSE(ChunkRoom::of_a_row({1, UINT64_MAX}, {1, 1}, 1));
  EXPECT_FALSE(ChunkRoom::of_a_row({1, 1, 1}, {UINT64_MAX, UINT64_MAX, 2}, 1));
}

}  // namespace
}  // namespace cairn::hdf5
