// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/packed_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

namespace cairn::node {
namespace {

using ChunkNumbers = std::vector<std::uint64_t>;

// 64 x 64 cells in chunks of 8 x 8: eight rows of eight chunks.
PackedWatch watch_of_square() {
  return PackedWatch({{1, 2}, {64, 64}, {8, 8}, 4, *arrays::FilterList::of(std::array{1U})});
}

TEST(PackedWatch, TheChunksOfTheNextBoxComeNext) {
  PackedWatch watch = watch_of_square();
  for (std::uint64_t reader = 0; reader < 4; ++reader)
    watch.observe(reader, {{0, 16 * reader}, {16, 16}});
  EXPECT_EQ(watch.take(4), (ChunkNumbers{16, 17, 18, 19}));
  EXPECT_EQ(watch.take(100).size(), 12u);
  EXPECT_FALSE(watch.has_wanted());
}

TEST(PackedWatch, RowsStandForTheirChunks) {
  PackedWatch watch = watch_of_square();
  for (std::uint64_t row = 0; row < 32; row += 8) watch.observe(1, {{row, 0}, {1, 64}});
  EXPECT_EQ(watch.take(100), (ChunkNumbers{32, 33, 34, 35, 36, 37, 38, 39}));
}

TEST(PackedWatch, WhatIsReadIsWantedNoMore) {
  PackedWatch watch = watch_of_square();
  for (std::uint64_t reader = 0; reader < 4; ++reader)
    watch.observe(reader, {{0, 16 * reader}, {16, 16}});
  watch.observe(0, {{16, 0}, {16, 16}});
  EXPECT_EQ(watch.take(2), (ChunkNumbers{18, 19})) << "16 and 17 have their reader";
  EXPECT_EQ(watch.unread_bytes(), 0u);
  watch.note_unpacked(18, {});
  EXPECT_EQ(watch.unread_bytes(), 256u);
  watch.observe(1, {{16, 16}, {16, 16}});
  EXPECT_EQ(watch.unread_bytes(), 0u);
  watch.note_unpacked(19, {});
  EXPECT_EQ(watch.unpacked(), 1u) << "the reader was sooner";
}

// What a program passes by would else count for as long as it reads anything of the dataset.
TEST(PackedWatch, ReadersThatDoNotComeAreNotWaitedForForEver) {
  PackedWatch watch = watch_of_square();
  for (std::uint64_t reader = 0; reader < 4; ++reader)
    watch.observe(reader, {{0, 16 * reader}, {16, 16}});
  ASSERT_EQ(watch.take(2), (ChunkNumbers{16, 17}));
  const PackedWatch::Time begin;
  watch.note_unpacked(16, begin);
  watch.note_unpacked(17, begin + std::chrono::seconds(30));
  watch.forget_unread(begin);
  EXPECT_EQ(watch.unread_bytes(), 512u);
  watch.forget_unread(begin + std::chrono::seconds(1));
  EXPECT_EQ(watch.unread_bytes(), 256u) << "the younger one may still be read";
  watch.observe(0, {{16, 0}, {16, 16}});
  EXPECT_EQ(watch.unread_bytes(), 0u);
  watch.forget_unread(begin + std::chrono::seconds(60));
  EXPECT_EQ(watch.unread_bytes(), 0u) << "one that was read is not counted off twice";
}

TEST(PackedWatch, ABatchGoesOnInTheFile) {
  PackedWatch watch = watch_of_square();
  for (std::uint64_t reader = 0; reader < 4; ++reader)
    watch.observe(reader, {{32, 16 * reader}, {16, 16}});
  EXPECT_EQ(watch.take(4), (ChunkNumbers{48, 49, 50, 51}));
  const ChunkNumbers next = watch.take(100);
  EXPECT_EQ(next.front(), 52u);
  EXPECT_EQ(next.size(), 12u);
  EXPECT_TRUE(std::ranges::is_sorted(next));
}

}  // namespace
}  // namespace cairn::node
