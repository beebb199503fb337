// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/packed_array.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace cairn::arrays {
namespace {

// 10 x 6 cells in chunks of 4 x 4: three rows of two chunks.
PackedArray small_array() {
  return {{8, 0}, {10, 6}, {4, 4}, 8, *FilterList::of(std::array{2U, 1U})};
}

std::vector<PackedChunk> table_of_small() {
  std::vector<PackedChunk> table(6);
  for (std::uint32_t at = 0; at < table.size(); ++at) table[at] = {100 + 50 * at, 50, 0};
  return table;
}

TEST(FilterList, HasEachPlainFilterOnce) {
  EXPECT_EQ(FilterList::of(std::array{2U, 1U, 3U})->all().size(), 3u);
  EXPECT_FALSE(FilterList::of(std::span<const std::uint32_t>()));
  EXPECT_FALSE(FilterList::of(std::array{1U, 1U}));
  EXPECT_FALSE(FilterList::of(std::array{2U, 32000U}));
  EXPECT_FALSE(FilterList::of(std::array{2U, 0U}));
  EXPECT_NE(FilterList::of(std::array{2U, 1U}), FilterList::of(std::array{1U, 2U}));
}

TEST(PackedArray, ChunksAreCutAtTheEdgesOfTheArray) {
  const PackedArray array = small_array();
  const auto grid = array.grid();
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->chunks(), 6u);
  EXPECT_EQ(grid->chunk(5), (Box{{8, 4}, {2, 2}}));
  EXPECT_EQ(array.file_chunk(*grid, 5), (Box{{8, 4}, {4, 4}}));
  EXPECT_EQ(array.chunk_bytes(), 128u);
}

TEST(PackedArray, OneThatCannotBeHasNoGrid) {
  const std::vector<void (*)(PackedArray*)> damages = {
      [](auto* array) { array->cell_bytes = 0; },
      [](auto* array) { array->shape[0] = 0; },
      [](auto* array) { array->chunk[1] = 0; },
      [](auto* array) { array->chunk = {4}; },
      [](auto* array) { array->shape = {}; },
      [](auto* array) { array->shape[0] = UINT64_MAX; },
      [](auto* array) { array->chunk[0] = UINT64_MAX; },
      [](auto* array) { array->cell_bytes = PackedArray::kChunkBytesMax; },
      [](auto* array) { array->shape[0] = 4 * PackedArray::kChunksMax; }};
  for (std::size_t at = 0; at < damages.size(); ++at) {
    PackedArray array = small_array();
    damages[at](&array);
    EXPECT_FALSE(array.grid()) << at;
  }
}

TEST(PackedArray, EachArrayHasATableOfItsOwn) {
  const auto name = chunk_table_name(small_array());
  PackedArray other = small_array();
  other.filters = *FilterList::of(std::array{1U});
  EXPECT_NE(chunk_table_name(other), name);
  other = small_array();
  other.chunk[0] = 5;
  EXPECT_NE(chunk_table_name(other), name);
  EXPECT_EQ(chunk_table_name(small_array()), name);
}

TEST(PackedArray, ATableIsSoundWhereAllChunksAreInTheFile) {
  const PackedArray array = small_array();
  EXPECT_TRUE(is_sound(table_of_small(), array, 400));
  EXPECT_FALSE(is_sound(table_of_small(), array, 399)) << "the last one ends behind the file";
  EXPECT_FALSE(is_sound(table_of_small(), array, 10));
  EXPECT_FALSE(is_sound({}, array, 400));
  std::vector<PackedChunk> table = table_of_small();
  table.pop_back();
  EXPECT_FALSE(is_sound(table, array, 400)) << "one is missing";
  table = table_of_small();
  table[2] = {};
  EXPECT_TRUE(is_sound(table, array, 400)) << "one that was never written";
  EXPECT_FALSE(table[2].is_plain());
  table[3].offset = UINT64_MAX;
  EXPECT_FALSE(is_sound(table, array, 400)) << "its end wraps";
  table[3] = {0, UINT32_MAX, 0};
  EXPECT_FALSE(is_sound(table, array, std::uint64_t{1} << 40)) << "no chunk is as large";
  table[3] = {100, 50, 1};
  EXPECT_TRUE(is_sound(table, array, 400));
  EXPECT_FALSE(table[3].is_plain()) << "it went through one filter less";
}

}  // namespace
}  // namespace cairn::arrays
