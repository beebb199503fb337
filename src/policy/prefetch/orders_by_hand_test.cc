// SPDX-License-Identifier: Apache-2.0
// Walks and extents, in cases small enough to be worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "policy/prefetch/predictors.h"

namespace cairn {
namespace {

std::vector<std::int64_t> firsts_foreseen(const Predictor& predictor, std::size_t count) {
  std::vector<BlockRun> next(count);
  next.resize(predictor.predict(next));
  std::vector<std::int64_t> firsts;
  for (const BlockRun& run : next) firsts.push_back(run.first);
  return firsts;
}

void read_each(Predictor& predictor, const std::vector<std::int64_t>& blocks) {
  for (const std::int64_t block : blocks) predictor.observe(BlockRun{block, 1});
}

using Firsts = std::vector<std::int64_t>;

TEST(Walks, ThreeReadsBeginAWalkWhereverTheyStand) {
  Walks walks;
  // Steps of 3, and of -7, in turn.
  read_each(walks, {0, 500, 3, 493, 6});
  EXPECT_EQ(firsts_foreseen(walks, 2), (Firsts{9, 12}));
  read_each(walks, {486});
  EXPECT_EQ(firsts_foreseen(walks, 4), (Firsts{9, 479, 12, 472}));
  EXPECT_EQ(walks.verdict(), Verdict::kNone);
  read_each(walks, {9});
  EXPECT_EQ(walks.verdict(), Verdict::kRight);
}

TEST(Walks, EachIsForeseenAtItsOwnRate) {
  Walks walks;
  // One of steps of 2, two of whose steps come for each of 5.
  std::int64_t slow = 1000;
  std::int64_t fast = 0;
  for (int turn = 0; turn < 20; ++turn) read_each(walks, {slow += 5, fast += 2, fast += 2});
  const Firsts next = firsts_foreseen(walks, 6);
  EXPECT_EQ(std::count_if(next.begin(), next.end(), [](std::int64_t at) { return at >= 1000; }), 2);
}

TEST(Walks, AdjoiningReadsOfAnyLengthAreAWalk) {
  Walks walks;
  for (const BlockRun run : {BlockRun{0, 3}, {900, 1}, {3, 1}, {700, 2}, {4, 6}})
    walks.observe(run);
  EXPECT_EQ(firsts_foreseen(walks, 2), (Firsts{10, 16}));
}

TEST(Walks, OneThatIsLongOverdueHasEnded) {
  Walks walks;
  read_each(walks, {0, 3, 6, 9});
  EXPECT_FALSE(firsts_foreseen(walks, 1).empty());
  bool was_wrong = false;
  std::int64_t block = 100'000;
  for (std::int64_t step = 1000; step < 1030; ++step) {
    read_each(walks, {block += step * step});
    was_wrong |= walks.verdict() == Verdict::kWrong;
  }
  EXPECT_TRUE(firsts_foreseen(walks, 1).empty());
  EXPECT_TRUE(was_wrong);
}

TEST(Walks, ABackwardOneEndsAtTheBeginningOfTheFile) {
  Walks walks;
  read_each(walks, {8, 6, 4});
  EXPECT_EQ(firsts_foreseen(walks, 8), (Firsts{2, 0}));
}

class ExtentsByHand : public ::testing::Test {
 protected:
  void read_extent(std::int64_t first, std::int64_t blocks) {
    for (std::int64_t block = first; block < first + blocks; ++block)
      extents_.observe(BlockRun{block, 1});
  }
  KnowledgeBudget budget_{1 << 20};
  AccessHistory history_{budget_, 1024};
  Extents extents_{history_};
};

TEST_F(ExtentsByHand, LearnsHowLongTheyAre) {
  for (const std::int64_t first : {500, 100, 900, 300}) {
    EXPECT_TRUE(firsts_foreseen(extents_, 8).empty());
    read_extent(first, 5);
  }
  for (std::int64_t more = 0; more < 20; ++more) read_extent(2000 + 100 * (more * 7 % 20), 5);
  extents_.observe(BlockRun{5000, 1});
  EXPECT_EQ(firsts_foreseen(extents_, 8), (Firsts{5001, 5002, 5003, 5004}));
  extents_.observe(BlockRun{5001, 1});
  EXPECT_EQ(firsts_foreseen(extents_, 8), (Firsts{5002, 5003, 5004}));
}

TEST_F(ExtentsByHand, TheHistoryKnowsTheEndOfOneReadBefore) {
  HistoryWriter writer(history_);
  writer.append(BlockRun{5000, 3});
  for (std::int64_t more = 0; more < 20; ++more) read_extent(100 * (more * 7 % 20), 9);
  extents_.observe(BlockRun{5000, 1});
  EXPECT_EQ(firsts_foreseen(extents_, 8), (Firsts{5001, 5002}));
}

TEST_F(ExtentsByHand, OneEndsWhereAnotherBegins) {
  HistoryWriter writer(history_);
  writer.append(BlockRun{5002, 3});
  for (std::int64_t more = 0; more < 20; ++more) read_extent(100 * (more * 7 % 20), 9);
  extents_.observe(BlockRun{5000, 1});
  EXPECT_EQ(firsts_foreseen(extents_, 8), (Firsts{5001}));
}

TEST_F(ExtentsByHand, SaysNothingWhereNoneGoesOn) {
  for (std::int64_t read = 0; read < 50; ++read) read_extent(read * 37 % 50 * 100, 1);
  EXPECT_TRUE(firsts_foreseen(extents_, 8).empty());
}

}  // namespace
}  // namespace cairn
