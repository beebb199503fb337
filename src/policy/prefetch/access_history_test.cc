// SPDX-License-Identifier: Apache-2.0
// The record of how a file was read, and its replay, in small cases.
#include "policy/prefetch/access_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random_source.h"
#include "policy/prefetch/history_replay.h"

namespace cairn {
namespace {

constexpr std::uint32_t kEntriesMax = 1024;

class AccessHistoryTest : public ::testing::Test {
 protected:
  static void read(HistoryReplay& stream, const std::vector<std::int64_t>& blocks) {
    for (const std::int64_t block : blocks) stream.observe(BlockRun{block, 1});
  }
  static std::vector<std::int64_t> foreseen(const HistoryReplay& stream, std::size_t count) {
    std::vector<BlockRun> next(count);
    next.resize(stream.predict(next));
    std::vector<std::int64_t> blocks;
    for (const BlockRun& run : next) {
      for (std::int64_t block = run.first; block < run.end(); ++block) blocks.push_back(block);
    }
    return blocks;
  }
  using Blocks = std::vector<std::int64_t>;

  KnowledgeBudget budget_{1 << 20};
  AccessHistory history_{budget_, kEntriesMax};
};

TEST_F(AccessHistoryTest, ReadsThatAdjoinAreOneEntry) {
  HistoryWriter writer(history_);
  writer.append(BlockRun{3, 2});
  writer.append(BlockRun{5, 1});
  writer.append(BlockRun{9, 1});
  const AccessHistory::Position position = history_.find(3);
  ASSERT_NE(position, AccessHistory::kNowhere);
  EXPECT_EQ(history_.at(position), (BlockRun{3, 3}));
  EXPECT_EQ(history_.at(history_.after(position)), (BlockRun{9, 1}));
  EXPECT_EQ(history_.find(5), AccessHistory::kNowhere);
}

TEST_F(AccessHistoryTest, SpeaksAfterTwoStepsThatAgree) {
  HistoryReplay stream(history_);
  read(stream, {40, 7, 90, 13, 60, 40});
  EXPECT_TRUE(foreseen(stream, 3).empty());
  read(stream, {7});
  EXPECT_EQ(foreseen(stream, 3), (Blocks{90, 13, 60}));
}

TEST_F(AccessHistoryTest, TheNextEpochGoesOnFromTheEndOfTheOneBefore) {
  HistoryReplay stream(history_);
  read(stream, {40, 7, 90, 13, 60, 40, 7, 90, 13});
  EXPECT_EQ(foreseen(stream, 7), (Blocks{60, 40, 7, 90, 13, 60, 40}));
}

TEST_F(AccessHistoryTest, WhatIsReplayedIsNotRecordedAgain) {
  HistoryReplay stream(history_);
  for (int epoch = 0; epoch < 1000; ++epoch) read(stream, {40, 7, 90, 13, 60});
  EXPECT_LE(history_.entries().size(), 16u);
}

// Each process of a long job reads some of the file, and another some each time.
TEST_F(AccessHistoryTest, AFileThatIsReadInNoOrderTakesNoMoreAndMoreRoom) {
  AccessHistory history(budget_, 1U << 14);
  RandomSource random(5);
  std::size_t most = 0;
  for (int streams = 0; streams < 20'000; ++streams) {
    HistoryReplay stream(history);
    for (int reads = 0; reads < 3; ++reads)
      stream.observe(BlockRun{static_cast<std::int64_t>(random.below(40)) * 2, 1});
    most = std::max(most, history.entries().size());
  }
  EXPECT_LT(most, 3000U);
}

TEST_F(AccessHistoryTest, AnOrderThatComesBackToOneBlockAgainAndAgainIsKept) {
  AccessHistory history(budget_, 1U << 14);
  HistoryReplay stream(history);
  std::size_t foretold = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (std::int64_t number = 0; number < 2000; ++number) {
      read(stream, {0});
      const std::int64_t next = 10 + number * 37 % 2000 * 10;
      foretold += foreseen(stream, 1) == Blocks{next} ? 1 : 0;
      read(stream, {next});
    }
  }
  EXPECT_GT(foretold, 1900U);
}

TEST_F(AccessHistoryTest, AnOrderIsKeptBesideSomeReadsInNone) {
  HistoryReplay epoch(history_);
  RandomSource random(5);
  std::vector<std::int64_t> order;
  for (std::int64_t read_number = 0; read_number < 500; ++read_number)
    order.push_back(read_number * 37 % 500 * 10);
  read(epoch, order);
  for (int reads = 0; reads < 200; ++reads) {
    HistoryReplay other(history_);
    other.observe(BlockRun{static_cast<std::int64_t>(random.below(500)) * 10, 1});
  }
  HistoryReplay next(history_);
  read(next, {order[0], order[1]});
  EXPECT_EQ(foreseen(next, 3), (Blocks{order[2], order[3], order[4]}));
}

TEST_F(AccessHistoryTest, AnotherStreamReplaysIt) {
  HistoryReplay first(history_);
  read(first, {40, 7, 90, 13, 60});
  HistoryReplay second(history_);
  read(second, {7, 90});
  EXPECT_EQ(foreseen(second, 8), (Blocks{13, 60}));
}

TEST_F(AccessHistoryTest, StreamsBesideEachOtherKeepTheirOrders) {
  HistoryReplay first(history_);
  HistoryReplay second(history_);
  for (std::int64_t read_number = 0; read_number < 50; ++read_number) {
    first.observe(BlockRun{read_number * 37 % 50 * 10, 1});
    second.observe(BlockRun{10'000 + read_number * 23 % 50 * 10, 1});
  }
  HistoryReplay again(history_);
  read(again, {0, 370, 240});
  EXPECT_EQ(foreseen(again, 3), (Blocks{110, 480, 350}));
  for (std::int64_t read_number = 3; read_number < 48; ++read_number) {
    again.observe(BlockRun{read_number * 37 % 50 * 10, 1});
    ASSERT_EQ(foreseen(again, 1).front(), (read_number + 1) * 37 % 50 * 10);
  }
}

TEST_F(AccessHistoryTest, WhoIsAheadIsReplayedRatherThanWhoHasJustBegun) {
  HistoryReplay leader(history_);
  read(leader, {40, 7, 90, 13, 60});
  HistoryReplay second(history_);
  read(second, {40});
  HistoryReplay third(history_);
  read(third, {40, 7});
  EXPECT_EQ(foreseen(third, 3), (Blocks{90, 13, 60}));
}

TEST_F(AccessHistoryTest, AnOrderThatHasChangedIsLearnedAnew) {
  HistoryReplay stream(history_);
  read(stream, {40, 7, 90, 13, 60});
  read(stream, {13, 90, 60, 7, 40});
  read(stream, {13, 90});
  EXPECT_EQ(foreseen(stream, 3), (Blocks{60, 7, 40}));
}

TEST_F(AccessHistoryTest, FindsBackAfterAReadThatWasNotThereBefore) {
  HistoryReplay stream(history_);
  read(stream, {40, 7, 90, 13, 60, 22, 81});
  read(stream, {40, 7, 555, 90, 13});
  EXPECT_EQ(foreseen(stream, 2), (Blocks{60, 22}));
}

TEST_F(AccessHistoryTest, ABlockReadAgainAndAgainDoesNotConfuseIt) {
  HistoryReplay stream(history_);
  read(stream, {0, 40, 0, 7, 0, 90, 0, 13});
  read(stream, {0, 40, 0});
  EXPECT_EQ(foreseen(stream, 3), (Blocks{7, 0, 90}));
}

TEST_F(AccessHistoryTest, LongStretchesComeInPiecesOfAReadsLength) {
  HistoryReplay first(history_);
  for (std::int64_t block = 0; block < 32; block += 4) first.observe(BlockRun{block, 4});
  first.observe(BlockRun{100, 4});
  first.observe(BlockRun{0, 4});
  first.observe(BlockRun{4, 4});
  std::vector<BlockRun> next(2);
  ASSERT_EQ(first.predict(next), 2u);
  EXPECT_EQ(next[0], (BlockRun{8, 4}));
  EXPECT_EQ(next[1], (BlockRun{12, 4}));
}

TEST_F(AccessHistoryTest, TheBeginningOfALongEpochIsReplayed) {
  HistoryReplay stream(history_);
  const std::int64_t epoch = 3 * kEntriesMax;
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t at = 0; at < epoch; ++at) {
      stream.observe(BlockRun{at * 1009 % epoch * 2, 1});
      const bool is_known = round == 2 && at > 2 && at < kEntriesMax / 2;
      if (!is_known) continue;
      ASSERT_EQ(foreseen(stream, 1), (Blocks{(at + 1) * 1009 % epoch * 2}));
    }
  }
  EXPECT_LE(history_.entries().size(), kEntriesMax);
}

TEST_F(AccessHistoryTest, WhatIsNeverReplayedIsForgotten) {
  HistoryReplay stream(history_);
  RandomSource random(3);
  for (std::uint32_t read_number = 0; read_number < 20 * kEntriesMax; ++read_number)
    stream.observe(BlockRun{random.below(1U << 30), 1});
  EXPECT_GE(history_.generation(), 2u);
  EXPECT_LE(history_.entries().size(), kEntriesMax);
}

TEST_F(AccessHistoryTest, AnotherHistoryIsRestoredFromItsEntries) {
  HistoryReplay first(history_);
  read(first, {40, 7, 90, 13, 60, 41, 8, 91, 14, 61, 42, 9, 92, 15});
  AccessHistory restored(budget_, kEntriesMax);
  ASSERT_TRUE(restored.restore(history_.entries()));
  HistoryReplay second(restored);
  read(second, {40, 7});
  EXPECT_EQ(foreseen(second, 20).size(), 12u);
  EXPECT_EQ(foreseen(second, 3), (Blocks{90, 13, 60}));
}

TEST_F(AccessHistoryTest, WhatIsNotInOrderIsNotRestored) {
  // A link to itself, one to nowhere, a stretch before the beginning.
  ASSERT_TRUE(history_.restore({{5, 1}, {1, 0}, {6, 1}, {1000, 0}, {-5, 3}, {7, 1}}));
  EXPECT_EQ(history_.after(history_.find(5)), AccessHistory::kNowhere);
  EXPECT_EQ(history_.after(history_.find(6)), AccessHistory::kNowhere);
  EXPECT_EQ(history_.find(-5), AccessHistory::kNowhere);
  EXPECT_FALSE(history_.restore(std::vector<BlockRun>(kEntriesMax + 1, BlockRun{1, 1})));
}

TEST_F(AccessHistoryTest, ALapEndsWhereItBegan) {
  HistoryReplay stream(history_);
  const Blocks lap = {40, 7, 90, 13, 60, 2};
  read(stream, lap);
  EXPECT_TRUE(stream.repeated().runs.empty()) << "it was gone through once";
  for (int again = 0; again < 4; ++again) read(stream, lap);
  const RepeatedOrder order = stream.repeated();
  ASSERT_EQ(order.runs.size(), lap.size());
  for (std::size_t at = 0; at < lap.size(); ++at) EXPECT_EQ(order.runs[at].first, lap[at]);
  EXPECT_EQ(order.runs[order.at].first, 2);
}

TEST_F(AccessHistoryTest, ALapEndsWithTheStreamThatReadIt) {
  HistoryReplay first(history_);
  Blocks lap;
  for (std::int64_t at = 0; at < 40; ++at) lap.push_back(at * 11 % 40);
  read(first, lap);
  HistoryReplay second(history_);
  read(second, {lap.begin(), lap.begin() + 10});
  EXPECT_TRUE(second.repeated().runs.empty()) << "too early to say";
  read(second, {lap.begin() + 10, lap.begin() + 20});
  const RepeatedOrder order = second.repeated();
  EXPECT_EQ(order.runs.size(), lap.size());
  EXPECT_EQ(order.runs[order.at].first, lap[19]);
  read(second, {500});
  EXPECT_TRUE(second.repeated().runs.empty());
}

// Another reader's part of the file is no part of the lap.
TEST_F(AccessHistoryTest, ALapIsThatOfTheReaderWhoseItWas) {
  HistoryReplay one(history_);
  HistoryReplay other(history_);
  Blocks lap;
  for (std::int64_t at = 0; at < 30; ++at) {
    read(one, {3 * at});
    read(other, {1000 + 5 * at});
    lap.push_back(1000 + 5 * at);
  }
  HistoryReplay later(history_);
  read(later, {lap.begin(), lap.begin() + 20});
  const RepeatedOrder order = later.repeated();
  ASSERT_FALSE(order.runs.empty());
  EXPECT_GE(order.runs[0].first, 1000);
  EXPECT_EQ(order.runs[order.at].first, lap[19]);
  EXPECT_EQ(order.runs.back().first, lap.back());
}

}  // namespace
}  // namespace cairn
