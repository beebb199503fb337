// SPDX-License-Identifier: Apache-2.0
// Reads that follow a forecast, leave some of it out, cut it, or have nothing to do with it.
#include "service/plugins/forecast.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn {
namespace {

class ForecastTest : public ::testing::Test {
 protected:
  // The first that comes next; no blocks: nothing does.
  BlockRun next() const {
    BlockRun run{0, 0};
    (void)forecast_.copy({&run, 1});
    return run;
  }

  Forecast forecast_;
};

TEST_F(ForecastTest, NothingIsForeseenBeforeTheFirst) {
  forecast_.pass({7, 1});
  EXPECT_EQ(forecast_.left(), 0u);
  EXPECT_EQ(forecast_.misses(), 1u);
  EXPECT_EQ(next().count, 0u);
}

TEST_F(ForecastTest, ReadsFollowIt) {
  forecast_.begin({{10, 2}, {30, 2}, {20, 2}});
  forecast_.pass({10, 2});
  EXPECT_EQ(next(), (BlockRun{30, 2}));
  std::array<BlockRun, 4> all;
  ASSERT_EQ(forecast_.copy(all), 2u);
  EXPECT_EQ(all[1], (BlockRun{20, 2}));
  forecast_.pass({30, 2});
  forecast_.pass({20, 2});
  EXPECT_EQ(forecast_.left(), 0u);
  EXPECT_EQ(forecast_.hits(), 3u);
  EXPECT_EQ(forecast_.misses(), 0u);
}

TEST_F(ForecastTest, SomeReadsAreLeftOutAndOthersComeBetween) {
  std::vector<BlockRun> runs;
  for (std::int64_t at = 0; at < 40; ++at) runs.push_back({100 * at, 1});
  forecast_.begin(runs);
  forecast_.pass({1600, 1});  // as far ahead as it is looked for
  EXPECT_EQ(next(), (BlockRun{1700, 1}));
  forecast_.pass({1650, 1});
  EXPECT_EQ(forecast_.misses(), 1u);
  EXPECT_EQ(next(), (BlockRun{1700, 1}));
  forecast_.pass({3900, 1});
  EXPECT_EQ(forecast_.misses(), 2u);
  EXPECT_EQ(next(), (BlockRun{1700, 1}));
}

TEST_F(ForecastTest, ShortReadsTakeAPartAndLongOnesSeveral) {
  forecast_.begin({{0, 8}, {8, 8}, {16, 8}, {100, 1}});
  forecast_.pass({0, 3});
  EXPECT_EQ(next(), (BlockRun{3, 5}));
  forecast_.pass({3, 15});
  EXPECT_EQ(next(), (BlockRun{18, 6}));
  forecast_.pass({17, 7});
  EXPECT_EQ(next(), (BlockRun{100, 1}));
  EXPECT_EQ(forecast_.hits(), 3u);
}

TEST_F(ForecastTest, ANewOneBeginsFromNothing) {
  forecast_.begin({{1, 1}});
  forecast_.pass({2, 1});
  forecast_.begin({{5, 1}});
  EXPECT_EQ(forecast_.misses(), 0u);
  EXPECT_EQ(next(), (BlockRun{5, 1}));
}

}  // namespace
}  // namespace cairn
