// SPDX-License-Identifier: Apache-2.0
// Queries against a look at every cell and every chunk of small arrays.
#include "policy/arrays/chunk_query.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "policy/arrays/testing/small_arrays.h"

namespace cairn::arrays {
namespace {

// The paper's: an array [8,8], chunks [4,4], ghost zones of one cell.
ChunkGrid paper() {
  ChunkShape shape = ChunkShape::plain({4, 4});
  shape.ghost = GhostWidth::around({1, 1});
  return *ChunkGrid::of({8, 8}, shape);
}

IsCached among(const std::set<std::uint64_t>& cached) {
  return [&cached](std::uint64_t chunk) { return cached.contains(chunk); };
}

TEST(ChunkQuery, TheBaseCasesOfThePaper) {
  const ChunkGrid grid = paper();
  const std::set<std::uint64_t> cached{0, 1};
  const auto match = [&](const Box& box) { return query(grid, box, among(cached)).match; };
  EXPECT_EQ(match({{0, 0}, {5, 5}}), Match::kWhole);
  EXPECT_EQ(match({{0, 0}, {4, 4}}), Match::kPart) << "without its ghost zone";
  EXPECT_EQ(match({{1, 1}, {2, 2}}), Match::kPart);
  EXPECT_EQ(match({{3, 4}, {2, 1}}), Match::kPart) << "a row of it is in the ghost zone";
  EXPECT_EQ(match({{0, 2}, {4, 5}}), Match::kSeveral);
  EXPECT_EQ(match({{2, 0}, {6, 8}}), Match::kSome);
  EXPECT_EQ(match({{6, 0}, {2, 8}}), Match::kNone);
}

// Whether each cell of the box is in one piece, and what is called cached is.
void expect_cover(const ChunkGrid& grid, const Box& box, const ChunkQuery& answer,
                  const std::set<std::uint64_t>& cached) {
  std::uint64_t cells = 0;
  for (const QueryPiece& piece : answer.pieces) {
    ASSERT_TRUE(box.contains(piece.cells));
    ASSERT_TRUE(grid.with_ghost(piece.chunk).contains(piece.cells));
    ASSERT_EQ(piece.is_cached, cached.contains(piece.chunk));
    cells += *piece.cells.cells();
  }
  for (std::size_t one = 0; one < answer.pieces.size(); ++one) {
    for (std::size_t other = 0; other < one; ++other)
      ASSERT_FALSE(intersection(answer.pieces[one].cells, answer.pieces[other].cells));
  }
  ASSERT_EQ(cells, *box.cells());
}

TEST(ChunkQuery, AgreesWithALookAtEveryChunk) {
  std::mt19937 random(7);
  for (int round = 0; round < 20'000; ++round) {
    const testing::SmallArray drawn = testing::draw(random);
    const ChunkGrid grid = *ChunkGrid::of(drawn.array, drawn.shape);
    std::set<std::uint64_t> cached;
    std::vector<std::uint64_t> around;
    bool is_in_one = false;
    for (std::uint64_t chunk = 0; chunk < grid.chunks(); ++chunk) {
      const bool has_all = grid.with_ghost(chunk).contains(drawn.box);
      if (has_all) around.push_back(chunk);
      if (random() % 2 == 0) cached.insert(chunk);
      is_in_one = is_in_one || (has_all && cached.contains(chunk));
    }
    std::vector<std::uint64_t> found;
    if (const auto places = grid.chunks_around(drawn.box))
      grid.for_each(*places, [&](std::uint64_t chunk) { found.push_back(chunk); });
    ASSERT_EQ(found, around) << "round " << round;
    const ChunkQuery answer = query(grid, drawn.box, among(cached));
    expect_cover(grid, drawn.box, answer, cached);
    ASSERT_EQ(answer.match >= Match::kPart, is_in_one) << "round " << round;
    if (is_in_one) continue;
    const auto of_cached = std::ranges::count_if(answer.pieces, &QueryPiece::is_cached);
    const bool is_all = static_cast<std::size_t>(of_cached) == answer.pieces.size();
    const Match expected = is_all ? Match::kSeveral : of_cached != 0 ? Match::kSome : Match::kNone;
    ASSERT_EQ(answer.match, expected);
  }
}

}  // namespace
}  // namespace cairn::arrays
