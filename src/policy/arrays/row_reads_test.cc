// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/row_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "policy/arrays/testing/small_arrays.h"

namespace cairn::arrays {
namespace {

using Runs = std::vector<ByteRun>;

TEST(RowReads, RowsOfABox) {
  const Coordinates array{4, 8};
  EXPECT_EQ(runs_of(array, 4, {{1, 2}, {2, 3}}), (Runs{{40, 12}, {72, 12}}));
  EXPECT_EQ(runs_of(array, 4, {{1, 0}, {2, 8}}), (Runs{{32, 64}})) << "whole rows are one run";
  EXPECT_EQ(runs_of(array, 4, {{1, 0}, {0, 8}}), Runs{});
  EXPECT_EQ(runs_of({}, 8, {}), (Runs{{0, 8}})) << "a scalar";
}

// A disk turns for 4 ms while it would read 400 kB.
TEST(RowReads, AThousandShortRowsAreFewReads) {
  const Coordinates array{1000, 1000};
  const Box column{{0, 10}, {1000, 2}};
  const ReadCost disk{0.004, 100e6, 1 << 20};
  EXPECT_EQ(plan_reads(array, 8, column, disk).size(), 8U);
  const ReadCost memory{0, 10e9, 1 << 20};
  EXPECT_EQ(plan_reads(array, 8, column, memory).size(), 1000U);
}

TEST(RowReads, ALongRunIsCut) {
  const ReadCost cost{0.001, 1e6, 1000};
  EXPECT_EQ(plan_reads({2500}, 1, {{100}, {2400}}, cost),
            (Runs{{100, 1000}, {1100, 1000}, {2100, 400}}));
}

// Each cell of the box is read once, nothing is read behind the last one, and what is read in vain
// costs less than the requests that it saves.
TEST(RowReads, AgreesWithALookAtEveryCell) {
  std::mt19937 random(3);
  for (int round = 0; round < 20'000; ++round) {
    const testing::SmallArray drawn = testing::draw(random);
    const std::size_t cell = 1 + random() % 3;
    const ReadCost cost{static_cast<double>(random() % 8), 1, 1 + random() % 40};
    std::vector<int> wanted(*whole(drawn.array).cells() * cell, 0);
    for (const ByteRun& run : runs_of(drawn.array, cell, drawn.box))
      for (std::uint64_t at = run.offset; at < run.end(); ++at) ++wanted[at];
    std::uint64_t bytes = 0;
    for (const int times : wanted) {
      ASSERT_LE(times, 1);
      bytes += static_cast<std::uint64_t>(times);
    }
    ASSERT_EQ(bytes, *drawn.box.cells() * cell);
    std::uint64_t end = 0;
    std::uint64_t in_vain = 0;
    const Runs reads = plan_reads(drawn.array, cell, drawn.box, cost);
    for (const ByteRun& read : reads) {
      ASSERT_GE(read.offset, end);
      ASSERT_LE(read.bytes, cost.bytes_max);
      end = read.end();
      ASSERT_LE(end, wanted.size());
      for (std::uint64_t at = read.offset; at < end; ++at)
        in_vain += 1 - std::exchange(wanted[at], 0);
    }
    ASSERT_EQ(std::count(wanted.begin(), wanted.end(), 1), 0) << "round " << round;
    const std::size_t runs = runs_of(drawn.array, cell, drawn.box).size();
    ASSERT_LE(in_vain, runs * cost.gap_bytes()) << "round " << round;
  }
}

}  // namespace
}  // namespace cairn::arrays
