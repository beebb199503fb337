// SPDX-License-Identifier: Apache-2.0
// Orders that change a little from epoch to epoch, in cases small enough to be worked out by hand.
#include <gtest/gtest.h>

#include "policy/prefetch/history_replay.h"

namespace cairn {
namespace {

std::vector<std::int64_t> places_foreseen(const Predictor& predictor, std::size_t count) {
  std::vector<BlockRun> next(count);
  next.resize(predictor.predict(next));
  std::vector<std::int64_t> firsts;
  for (const BlockRun& run : next) firsts.push_back(run.first);
  return firsts;
}

void read_in_turn(Predictor& predictor, const std::vector<std::int64_t>& blocks) {
  for (const std::int64_t block : blocks) predictor.observe(BlockRun{block, 1});
}

using Places = std::vector<std::int64_t>;

class ReplayOfChanges : public ::testing::Test {
 protected:
  static constexpr int kReads = 40;
  // The next epoch, with one read instead of another.
  void read_epoch(int place = -1, std::int64_t instead = 0) {
    if (place >= 0) order_[static_cast<std::size_t>(place)] = instead;
    read_in_turn(replay_, order_);
  }
  static Places first_order() {
    Places order;
    for (std::int64_t read = 0; read < kReads; ++read) order.push_back(read * 17 % 41 * 10);
    return order;
  }
  KnowledgeBudget budget_{1 << 20};
  AccessHistory history_{budget_, 1024};
  HistoryReplay replay_{history_};
  Places order_ = first_order();
};

TEST_F(ReplayOfChanges, KeepsItsPlaceAfterASurprise) {
  read_epoch();
  read_in_turn(replay_, Places(order_.begin(), order_.begin() + 20));
  replay_.observe(BlockRun{77'777, 1});
  EXPECT_EQ(places_foreseen(replay_, 2), (Places{order_[21], order_[22]}));
  replay_.observe(BlockRun{order_[21], 1});
  EXPECT_EQ(places_foreseen(replay_, 2), (Places{order_[22], order_[23]}));
}

TEST_F(ReplayOfChanges, WhatWasReadInsteadIsExpectedInTheNextEpoch) {
  read_epoch();
  read_epoch(20, 77'777);
  read_in_turn(replay_, Places(order_.begin(), order_.begin() + 19));
  EXPECT_EQ(places_foreseen(replay_, 3), (Places{order_[19], 77'777, order_[21]}));
}

TEST_F(ReplayOfChanges, ReadsMayBeLeftOut) {
  read_epoch();
  read_in_turn(replay_, Places(order_.begin(), order_.begin() + 20));
  replay_.observe(BlockRun{order_[22], 1});
  EXPECT_EQ(places_foreseen(replay_, 2), (Places{order_[23], order_[24]}));
}

TEST_F(ReplayOfChanges, FollowsAStreamThatGoesElsewhere) {
  read_epoch();
  read_in_turn(replay_, Places(order_.begin(), order_.begin() + 10));
  read_in_turn(replay_, {order_[30], order_[31]});
  EXPECT_EQ(places_foreseen(replay_, 2), (Places{order_[32], order_[33]}));
}

TEST(AccessHistoryReplace, ManyExchangesLeaveAllToBeFound) {
  KnowledgeBudget budget(1 << 20);
  AccessHistory history(budget, 1024);
  HistoryWriter writer(history);
  for (std::int64_t at = 0; at < 100; ++at) writer.append(BlockRun{10 * at, 1});
  for (std::int64_t exchange = 0; exchange < 10'000; ++exchange) {
    const auto place = static_cast<AccessHistory::Position>(exchange % 50);
    history.replace(place, BlockRun{100'000 + exchange * 3, 1});
    ASSERT_EQ(history.find(100'000 + exchange * 3), place);
  }
  EXPECT_EQ(history.find(0), AccessHistory::kNowhere);
  EXPECT_EQ(history.at(history.find(990)).first, 990);
}

}  // namespace
}  // namespace cairn
