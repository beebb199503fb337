// SPDX-License-Identifier: Apache-2.0
// Copies from box to box, each cell compared with where it has to come from.
#include "policy/arrays/box_copy.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "policy/arrays/chunk_grid.h"
#include "policy/arrays/coord_hash.h"

namespace cairn::arrays {
namespace {

std::uint64_t number_in(const Box& box, const Coordinates& cell) {
  Coordinates inside = cell;
  for (std::size_t at = 0; at < cell.size(); ++at) inside[at] -= box.first[at];
  return (*CoordHash::of(box.count))(inside);
}

// A box of an array of 8 cells a dimension.
Box draw(std::mt19937& random, std::size_t dimensions) {
  Box box{Coordinates(dimensions, 0), Coordinates(dimensions, 1)};
  for (std::size_t at = 0; at < dimensions; ++at) {
    box.first[at] = random() % 8;
    box.count[at] = random() % 3 == 0 ? 8 - box.first[at] : 1 + random() % (8 - box.first[at]);
  }
  return box;
}

void compare(const Box& what, std::size_t cell_bytes, const Box& from_box, const Box& to_box) {
  std::vector<std::byte> from(*from_box.cells() * cell_bytes);
  for (std::size_t at = 0; at < from.size(); ++at) from[at] = static_cast<std::byte>(at % 251);
  const std::vector<std::byte> before(*to_box.cells() * cell_bytes, std::byte{0xFF});
  std::vector<std::byte> to = before;
  std::vector<std::byte> expected = before;
  Coordinates cell = what.first;
  do {
    for (std::size_t at = 0; at < cell_bytes; ++at)
      expected[number_in(to_box, cell) * cell_bytes + at] =
          from[number_in(from_box, cell) * cell_bytes + at];
  } while (next_place(what, &cell));
  copy_cells(what, cell_bytes, {from.data(), from_box}, {to.data(), to_box});
  ASSERT_EQ(to, expected);
  std::vector<std::byte> by_runs = before;
  for (const CopyRun& run : runs_between(what, cell_bytes, from_box, to_box))
    std::memcpy(by_runs.data() + run.to, from.data() + run.from, run.bytes);
  ASSERT_EQ(by_runs, expected);
}

TEST(BoxCopy, EveryCellComesFromItsPlaceAndNoOtherChanges) {
  constexpr unsigned kSeed = 26112026;
  std::mt19937 random(kSeed);
  int copied = 0;
  for (int turn = 0; turn < 3000; ++turn) {
    SCOPED_TRACE("turn " + std::to_string(turn) + ", seed " + std::to_string(kSeed));
    const std::size_t dimensions = 1 + random() % 4;
    const Box from = draw(random, dimensions);
    const Box to = draw(random, dimensions);
    const auto what = intersection(from, to);
    constexpr std::size_t kCells[] = {1, 2, 3, 4, 8, 12, 16, 24};
    if (!what) continue;
    ++copied;
    compare(*what, kCells[random() % std::size(kCells)], from, to);
  }
  EXPECT_GT(copied, 500);
}

TEST(BoxCopy, AWholeBoxAndAColumnAndAScalar) {
  const Box box{{2, 3, 0}, {4, 5, 6}};
  compare(box, 8, box, box);
  compare({{2, 3, 5}, {4, 5, 1}}, 4, box, box);
  compare({}, 8, {}, {});
}

}  // namespace
}  // namespace cairn::arrays
