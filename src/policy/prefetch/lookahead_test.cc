// SPDX-License-Identifier: Apache-2.0
// How far ahead is read, after what has become of what was fetched.
#include "policy/prefetch/lookahead.h"

#include <gtest/gtest.h>

#include "base/random_source.h"

namespace cairn {
namespace {

TEST(Lookahead, BeginsWithEightBlocks) {
  const Lookahead lookahead;
  EXPECT_EQ(lookahead.blocks_ahead(), 8u);
  EXPECT_EQ(lookahead.blocks_ahead(2), 16u);
  EXPECT_EQ(lookahead.runs_ahead(1), 8u);
  EXPECT_EQ(lookahead.runs_ahead(4), 2u);
  EXPECT_EQ(lookahead.runs_ahead(100), 1u);
}

TEST(Lookahead, LateFetchesRaiseIt) {
  Lookahead lookahead;
  lookahead.on_late();
  EXPECT_EQ(lookahead.blocks_ahead(), 9u);
  lookahead.on_late(16);
  EXPECT_EQ(lookahead.blocks_ahead(), 25u);
}

TEST(Lookahead, EvictionLowersIt) {
  Lookahead lookahead;
  lookahead.on_evicted_unused();
  EXPECT_EQ(lookahead.blocks_ahead(), 7u);
}

TEST(Lookahead, NewStreamsBeginWithWhatOthersNeeded) {
  CommonLookahead common;
  EXPECT_EQ(common.begin().blocks_ahead(), Lookahead::kBlocksFirst);
  Lookahead stream;
  stream.on_late(92);
  for (int times = 0; times < 50; ++times) common.learn(stream);
  EXPECT_NEAR(common.begin().blocks_ahead(), 100, 1);
  for (int times = 0; times < 50; ++times) {
    stream.on_evicted_unused();
    common.learn(stream);
  }
  EXPECT_LT(common.begin().blocks_ahead(), 60u);
  EXPECT_GE(common.begin().blocks_ahead(), 50u);
}

TEST(Lookahead, StaysWithinItsBounds) {
  RandomSource random(3);
  for (int round = 0; round < 20; ++round) {
    Lookahead lookahead;
    const std::uint32_t late = random.below(10);
    for (int event = 0; event < 5000; ++event) {
      if (random.below(10) < late) {
        lookahead.on_late(1 + random.below(300));
      } else {
        lookahead.on_evicted_unused();
      }
      ASSERT_GE(lookahead.blocks_ahead(), Lookahead::kBlocksMin);
      ASSERT_LE(lookahead.blocks_ahead(2), Lookahead::kBlocksMax);
    }
  }
  Lookahead lookahead;
  for (int event = 0; event < 1000; ++event) lookahead.on_evicted_unused();
  EXPECT_EQ(lookahead.blocks_ahead(), Lookahead::kBlocksMin);
  lookahead.on_late(10'000);
  EXPECT_EQ(lookahead.blocks_ahead(), Lookahead::kBlocksMax);
}

}  // namespace
}  // namespace cairn
