// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/chunk_ahead.h"

#include <gtest/gtest.h>

#include <random>

namespace cairn::arrays {
namespace {

using Chunks = std::vector<std::uint64_t>;

TEST(ChunkAhead, ATeamThatHasReadARowReadsTheNextOne) {
  ChunkAhead ahead(16);
  (void)ahead.observe('a', 0);
  (void)ahead.observe('c', 2);  // between them is a hole
  (void)ahead.observe('b', 1);
  (void)ahead.observe('d', 3);
  // Each has shown its step by its second read, whichever chunk that is.
  EXPECT_EQ(ahead.observe('a', 4), Chunks{8});
  EXPECT_EQ(ahead.observe('d', 7), Chunks{11});
  EXPECT_EQ(ahead.observe('b', 5), Chunks{9});
  EXPECT_EQ(ahead.observe('c', 6), Chunks{10});
  for (const std::uint64_t chunk : {8, 9, 10, 11}) (void)ahead.observe("abcd"[chunk - 8], chunk);
  EXPECT_GE(ahead.right(), 8u);
  EXPECT_EQ(ahead.observe('a', 12), Chunks{}) << "there is none behind the last";
}

TEST(ChunkAhead, OneReaderGoesOnAsItWent) {
  ChunkAhead ahead(1000);
  EXPECT_EQ(ahead.observe(1, 500), Chunks{501}) << "a team of one";
  EXPECT_EQ(ahead.observe(1, 490), Chunks{480});
  EXPECT_EQ(ahead.observe(1, 480), Chunks{470});
  EXPECT_EQ(ahead.observe(1, 480), Chunks{}) << "the same once more: no step";
}

TEST(ChunkAhead, BackBeyondTheFirstThereIsNone) {
  ChunkAhead ahead(10);
  (void)ahead.observe(1, 4);
  EXPECT_EQ(ahead.observe(1, 2), Chunks{0});
  EXPECT_EQ(ahead.observe(1, 0), Chunks{});
}

TEST(ChunkAhead, AChunkIsNamedOnce) {
  ChunkAhead ahead(100);
  (void)ahead.observe(1, 0);
  EXPECT_EQ(ahead.observe(1, 10), Chunks{20});
  EXPECT_EQ(ahead.observe(2, 19), Chunks{});
  EXPECT_EQ(ahead.observe(2, 10), Chunks{}) << "1 was named by the first reader, before";
  EXPECT_EQ(ahead.observe(1, 20), Chunks{30}) << "its reader has come there";
}

// 10,000 reads in no order: nearly nothing is fetched for them.
TEST(ChunkAhead, RandomReadsSoonCauseNothing) {
  ChunkAhead ahead(100'000);
  std::mt19937_64 random(7);
  std::size_t guesses = 0;
  for (int read = 0; read < 10'000; ++read)
    guesses += ahead.observe(random() % 4, random() % 100'000).size();
  EXPECT_LT(guesses, 100u);
  EXPECT_LT(ahead.right(), 10u);
  // A reader that does go in steps after all has what it wants.
  for (int read = 0; read < 4; ++read)
    (void)ahead.observe(9, static_cast<std::uint64_t>(10 * read));
  EXPECT_EQ(ahead.observe(9, 40), Chunks{50});
}

}  // namespace
}  // namespace cairn::arrays
