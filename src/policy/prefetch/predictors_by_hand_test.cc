// SPDX-License-Identifier: Apache-2.0
// What each predictor foresees in cases small enough to be worked out by hand.
#include <gtest/gtest.h>

#include "policy/prefetch/predictors.h"

namespace cairn {
namespace {

using RunList = std::vector<BlockRun>;

RunList foreseen_by(const Predictor& predictor, std::size_t count) {
  RunList next(count);
  next.resize(predictor.predict(next));
  return next;
}

void read_blocks(Predictor& predictor, const std::vector<std::int64_t>& blocks) {
  for (const std::int64_t block : blocks) predictor.observe(BlockRun{block, 1});
}

RunList single_blocks(const std::vector<std::int64_t>& blocks) {
  RunList runs;
  for (const std::int64_t block : blocks) runs.push_back(BlockRun{block, 1});
  return runs;
}

TEST(Sequential, SpeaksAfterTwoStepsInARow) {
  Sequential sequential;
  read_blocks(sequential, {10, 11});
  EXPECT_TRUE(foreseen_by(sequential, 2).empty());
  sequential.observe(BlockRun{12, 1});
  EXPECT_EQ(foreseen_by(sequential, 2), single_blocks({13, 14}));
  sequential.observe(BlockRun{20, 1});
  EXPECT_TRUE(foreseen_by(sequential, 2).empty());
}

TEST(Sequential, DoublesItsWindowFromFour) {
  Sequential sequential;
  read_blocks(sequential, {0, 1, 2});
  EXPECT_EQ(foreseen_by(sequential, 100).size(), 4u);
  sequential.observe(BlockRun{3, 1});
  EXPECT_EQ(foreseen_by(sequential, 100).size(), 8u);
}

TEST(Sequential, ForeseesReadsOfTheMeanLength) {
  Sequential sequential;
  sequential.observe(BlockRun{0, 2});
  sequential.observe(BlockRun{2, 6});
  sequential.observe(BlockRun{8, 3});
  EXPECT_EQ(foreseen_by(sequential, 2), (RunList{{11, 3}, {14, 3}}));
}

TEST(Stride, TwoEqualStepsArmItAndAnotherDisarmsIt) {
  Stride stride;
  read_blocks(stride, {100, 107});
  EXPECT_TRUE(foreseen_by(stride, 2).empty());
  stride.observe(BlockRun{114, 1});
  EXPECT_EQ(foreseen_by(stride, 2), single_blocks({121, 128}));
  stride.observe(BlockRun{115, 1});
  EXPECT_TRUE(foreseen_by(stride, 2).empty());
}

TEST(Stride, GoesBackwardsPastTheBeginning) {
  Stride stride;
  read_blocks(stride, {12, 8, 4});
  EXPECT_EQ(foreseen_by(stride, 2), single_blocks({0, -4}));
}

TEST(NamedRecently, GivesNoNameTwice) {
  NamedRecently<int, 2> named;
  const std::uint32_t ten = named.name(10);
  const std::uint32_t twenty = named.name(20);
  EXPECT_EQ(named.name(10), ten);
  // 20 was not named for longest.
  const std::uint32_t thirty = named.name(30);
  EXPECT_EQ(named.find(twenty), nullptr);
  ASSERT_NE(named.find(thirty), nullptr);
  EXPECT_EQ(*named.find(thirty), 30);
  EXPECT_NE(named.name(20), twenty);
  EXPECT_EQ(named.find(ten), nullptr);
  EXPECT_EQ(named.find(NamedRecently<int, 2>::kNone), nullptr);
}

TEST(NamedRecently, KnowsWhatCameBehindIt) {
  using Names = NamedRecently<int, 2>;
  Names named;
  const Names::Name ten = named.name(10);
  const Names::Name twenty = named.name(20);
  EXPECT_EQ(named.next_of(ten), Names::kNone);
  named.note_next(ten, twenty);
  EXPECT_EQ(named.next_of(ten), twenty);
  EXPECT_EQ(named.latest([](int value) { return value < 100; }), twenty);
  EXPECT_EQ(named.latest([](int value) { return value < 20; }), ten);
  EXPECT_EQ(named.latest([](int value) { return value < 10; }), Names::kNone);
  named.name(30);
  named.note_next(ten, twenty);
  EXPECT_EQ(named.next_of(ten), Names::kNone);
}

TEST(LoopNest, OneLapTeachesABound) {
  // Three reads 10 apart, then a step of 80 to the next row: 0 10 20, 100 110 120, 200.
  LoopNest nest;
  read_blocks(nest, {0, 10, 20, 100, 110});
  EXPECT_EQ(foreseen_by(nest, 4), single_blocks({120, 200, 210, 220}));
}

TEST(LoopNest, FollowsThreeLoops) {
  // Pairs 1 apart, two of them 10 apart, planes 100 apart.
  LoopNest nest;
  read_blocks(nest, {0, 1, 10, 11, 100, 101, 110});
  EXPECT_EQ(foreseen_by(nest, 5), single_blocks({111, 200, 201, 210, 211}));
}

TEST(LoopNest, KeepsTheLengthOfTheReadsOfEachLoop) {
  // A header of one block in front of each row of two reads of four.
  LoopNest nest;
  for (const std::int64_t row : {0, 100, 200}) {
    nest.observe(BlockRun{row, 1});
    nest.observe(BlockRun{row + 8, 4});
    nest.observe(BlockRun{row + 16, 4});
  }
  EXPECT_EQ(foreseen_by(nest, 3), (RunList{{300, 1}, {308, 4}, {316, 4}}));
}

TEST(LoopNest, LapsOfSeveralKindsTakeTurns) {
  // Three tiles of rows of six blocks, with ghost cells where there are neighbours: 0 to 2, 1 to 4
  // and 3 to 5; the next row begins 10 further.
  LoopNest nest;
  read_blocks(nest, {0, 1, 2, 1, 2, 3, 4, 3, 4, 5});
  read_blocks(nest, {10, 11, 12, 11, 12, 13, 14, 13, 14, 15, 20});
  EXPECT_EQ(foreseen_by(nest, 10), single_blocks({21, 22, 21, 22, 23, 24, 23, 24, 25, 30}));
}

TEST(LoopNest, ARowOfTilesTeachesTheNextOne) {
  // Rows of an array of 100 blocks a row; two in each tile. Tiles at the edge are two wide, the two
  // inside three: 0 1 | 10 11 12 | 20 21 22 | 30 31, and then the same 1000 further.
  LoopNest nest;
  const auto read_row_of_tiles = [&](std::int64_t first) {
    read_blocks(nest, {first, first + 1, first + 100, first + 101});
    for (const std::int64_t tile : {first + 10, first + 20})
      read_blocks(nest, {tile, tile + 1, tile + 2, tile + 100, tile + 101, tile + 102});
    read_blocks(nest, {first + 30, first + 31, first + 130, first + 131});
  };
  read_row_of_tiles(0);
  read_row_of_tiles(1000);
  read_blocks(nest, {2000, 2001, 2100});
  EXPECT_EQ(foreseen_by(nest, 9),
            single_blocks({2101, 2010, 2011, 2012, 2110, 2111, 2112, 2020, 2021}));
}

TEST(LoopNest, TheLengthOfReadsTellsLapsApart) {
  // Rows of tiles in one read each; those at the edges are shorter.
  LoopNest nest;
  for (std::int64_t first = 0; first < 300; first += 100) {
    for (const BlockRun& tile : {BlockRun{0, 5}, BlockRun{3, 6}, BlockRun{7, 5}}) {
      for (std::int64_t row = 0; row < 3; ++row)
        nest.observe(BlockRun{first + 20 * row + tile.first, tile.count});
    }
  }
  EXPECT_EQ(foreseen_by(nest, 7),
            (RunList{{300, 5}, {320, 5}, {340, 5}, {303, 6}, {323, 6}, {343, 6}, {307, 5}}));
}

TEST(LoopNest, LearnsAgainWhatWasPushedOut) {
  LoopNest nest;
  read_blocks(nest, {0, 10, 20, 100, 110, 120, 200});
  // More distances than it keeps, each of them new.
  std::int64_t block = 1'000'000;
  for (std::int64_t step = 1; step < 1000; ++step) read_blocks(nest, {block += 1000 * step});
  EXPECT_TRUE(foreseen_by(nest, 4).empty());
  for (std::int64_t row = 0; row < 400; row += 100) read_blocks(nest, {row, row + 10, row + 20});
  EXPECT_EQ(foreseen_by(nest, 4), single_blocks({400, 410, 420, 500}));
}

TEST(LoopNest, IsSilentWhileItsExpectationsFail) {
  LoopNest nest;
  read_blocks(nest, {0, 1, 5, 6, 2, 100, 3, 50, 7});
  EXPECT_TRUE(foreseen_by(nest, 4).empty());
}

TEST(DeltaPath, FollowsAPatternThatItHasSeenTwice) {
  DeltaPaths paths;
  DeltaPath path(paths);
  // Distances 3, 5, 11 by turns.
  read_blocks(path, {0, 3, 8, 19, 22, 27, 38, 41, 46, 57});
  EXPECT_EQ(foreseen_by(path, 3), single_blocks({60, 65, 76}));
}

TEST(DeltaPath, WhatOneStreamTeachesTheOthersKnow) {
  DeltaPaths paths;
  DeltaPath first(paths);
  read_blocks(first, {0, 3, 8, 19, 22, 27, 38, 41, 46, 57});
  DeltaPath second(paths);
  read_blocks(second, {1000, 1003, 1008});
  EXPECT_EQ(foreseen_by(second, 2), single_blocks({1019, 1022}));
}

TEST(DeltaPath, EndsWhereThePathIsUnsure) {
  DeltaPaths paths;
  DeltaPath path(paths);
  // After 7 comes 1, 2, 3 and 4, each as often: a quarter is less than what is followed.
  std::int64_t block = 0;
  for (int round = 0; round < 24; ++round) {
    path.observe(BlockRun{block += 1 + round % 4, 1});
    path.observe(BlockRun{block += 7, 1});
  }
  DeltaPath other(paths);
  read_blocks(other, {5000, 5007});
  EXPECT_TRUE(foreseen_by(other, 4).empty());
}

TEST(DeltaPaths, WhatIsOftenSeenOutlastsWhatIsSeenOnce) {
  DeltaPaths paths;
  DeltaPath steady(paths);
  read_blocks(steady, {0, 3, 8, 19, 22, 27, 38, 41, 46, 57, 60, 65, 76, 79, 84, 95});
  DeltaTrail noise;
  for (std::int32_t delta = 100; delta < 4100; ++delta) {
    noise.push(delta);
    paths.learn(noise, delta, 1);
  }
  EXPECT_EQ(foreseen_by(steady, 2), single_blocks({98, 103}));
}

class MarkovByHand : public ::testing::Test {
 protected:
  KnowledgeBudget budget_{1 << 20};
  SegmentChain chain_{budget_, 1024};
  Markov markov_{chain_};
};

TEST_F(MarkovByHand, ReplaysSegmentsAfterOneThatItForesaw) {
  // Segments: 0..1, 50, 90..92.
  read_blocks(markov_, {0, 1, 50, 90, 91, 92, 0, 1});
  EXPECT_TRUE(foreseen_by(markov_, 4).empty());
  markov_.observe(BlockRun{50, 1});
  EXPECT_EQ(foreseen_by(markov_, 5), single_blocks({90, 91, 92, 0, 1}));
}

TEST_F(MarkovByHand, EndsWhereTheNextSegmentIsUnsure) {
  // After 10 comes 20, 30 and 40 by turns.
  for (int round = 0; round < 4; ++round) {
    for (const std::int64_t next : {20, 30, 40}) read_blocks(markov_, {10, next});
  }
  EXPECT_TRUE(foreseen_by(markov_, 4).empty());
  read_blocks(markov_, {10});
  EXPECT_TRUE(foreseen_by(markov_, 4).empty());
}

TEST_F(MarkovByHand, HoldsNoMoreSegmentsThanItMay) {
  RunList reads;
  for (std::int64_t block = 0; block < 100'000; ++block) markov_.observe(BlockRun{3 * block, 1});
  EXPECT_LE(budget_.bytes_used(), 1024u * 32);
}

class DeclaredByHand : public ::testing::Test {
 protected:
  void declare(RunList runs) { hints_.declare(std::make_shared<const RunList>(std::move(runs))); }
  StreamHints hints_;
  Declared declared_{hints_};
};

TEST_F(DeclaredByHand, IsKnownBeforeTheFirstRead) {
  declare({{5, 2}, {100, 1}, {7, 3}});
  EXPECT_EQ(foreseen_by(declared_, 8), (RunList{{5, 2}, {100, 1}, {7, 3}}));
  declared_.observe(BlockRun{5, 2});
  EXPECT_EQ(foreseen_by(declared_, 8), (RunList{{100, 1}, {7, 3}}));
  read_blocks(declared_, {100, 7});
  EXPECT_EQ(foreseen_by(declared_, 8), (RunList{{8, 2}}));
}

TEST_F(DeclaredByHand, AReadMayBeOfSeveralRuns) {
  declare({{0, 2}, {2, 2}, {50, 4}});
  declared_.observe(BlockRun{0, 4});
  EXPECT_EQ(foreseen_by(declared_, 8), (RunList{{50, 4}}));
}

TEST_F(DeclaredByHand, SomeMayBeLeftOut) {
  declare(single_blocks({9, 3, 7, 1, 8, 2}));
  read_blocks(declared_, {9, 1});
  EXPECT_EQ(foreseen_by(declared_, 8), single_blocks({8, 2}));
  EXPECT_EQ(declared_.mismatches(), 0u);
}

TEST_F(DeclaredByHand, ReadsElsewhereAreCountedAndRefuteIt) {
  declare(single_blocks({9, 3, 7, 1, 8, 2}));
  for (unsigned read = 0; read < Declared::kMismatchesMax; ++read) {
    EXPECT_FALSE(declared_.is_refuted());
    EXPECT_EQ(foreseen_by(declared_, 1), single_blocks({9}));
    declared_.observe(BlockRun{1000 + read, 1});
  }
  EXPECT_TRUE(declared_.is_refuted());
  EXPECT_EQ(declared_.mismatches(), Declared::kMismatchesMax);
  EXPECT_TRUE(foreseen_by(declared_, 1).empty());
  declare(single_blocks({4, 5}));
  EXPECT_FALSE(declared_.is_refuted());
  EXPECT_EQ(foreseen_by(declared_, 1), single_blocks({4}));
}

TEST_F(DeclaredByHand, NowAndThenAReadElsewhereIsForgiven) {
  RunList runs;
  for (std::int64_t block = 0; block < 1000; ++block)
    runs.push_back(BlockRun{block * 37 % 1000, 1});
  declare(runs);
  for (std::size_t at = 0; at < runs.size(); ++at) {
    declared_.observe(runs[at]);
    if (at % 6 == 0) declared_.observe(BlockRun{5000, 1});
  }
  EXPECT_FALSE(declared_.is_refuted());
}

TEST(Advised, BelievesThatItIsReadSequentiallyFromTheFirstRead) {
  StreamHints hints;
  Advised advised(hints);
  advised.observe(BlockRun{4, 2});
  EXPECT_TRUE(foreseen_by(advised, 2).empty());
  hints.advise(AccessAdvice::kSequential);
  EXPECT_EQ(foreseen_by(advised, 2), (RunList{{6, 2}, {8, 2}}));
  advised.observe(BlockRun{100, 1});
  EXPECT_EQ(foreseen_by(advised, 1), single_blocks({101}));
  advised.observe(BlockRun{50, 1});
  EXPECT_TRUE(foreseen_by(advised, 1).empty());
}

TEST(StreamHints, WantedRangesAreHandedOutOnceAndInPieces) {
  StreamHints hints;
  hints.will_need(BlockRun{0, 100});
  hints.will_need(BlockRun{500, 10});
  std::array<BlockRun, 4> ranges;
  ASSERT_EQ(hints.take_wanted(ranges, 64), 1u);
  EXPECT_EQ(ranges[0], (BlockRun{0, 64}));
  ASSERT_EQ(hints.take_wanted(ranges, 64), 2u);
  EXPECT_EQ(ranges[0], (BlockRun{64, 36}));
  EXPECT_EQ(ranges[1], (BlockRun{500, 10}));
  EXPECT_EQ(hints.take_wanted(ranges, 64), 0u);
}

TEST(StreamHints, WhatIsReadMeanwhileIsNotWanted) {
  StreamHints hints;
  hints.will_need(BlockRun{10, 10});
  hints.observe(BlockRun{8, 5});
  std::array<BlockRun, 4> ranges;
  ASSERT_EQ(hints.take_wanted(ranges, 64), 1u);
  EXPECT_EQ(ranges[0], (BlockRun{13, 7}));
  hints.will_need(BlockRun{10, 10});
  hints.observe(BlockRun{0, 30});
  EXPECT_EQ(hints.take_wanted(ranges, 64), 0u);
}

TEST(StreamHints, TheOldestRangeGivesWay) {
  StreamHints hints;
  for (std::int64_t range = 0; range <= StreamHints::kRangesMax; ++range)
    hints.will_need(BlockRun{100 * range, 1});
  std::array<BlockRun, 32> ranges;
  ASSERT_EQ(hints.take_wanted(ranges, 1000), StreamHints::kRangesMax);
  EXPECT_EQ(ranges[0].first, 100);
}

}  // namespace
}  // namespace cairn
