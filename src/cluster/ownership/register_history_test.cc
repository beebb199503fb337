// SPDX-License-Identifier: Apache-2.0
// The checker finds what is not linearizable, and nothing else.
#include "cluster/ownership/testing/register_history.h"

#include <gtest/gtest.h>

namespace cairn::cluster {
namespace {

TEST(RegisterHistory, TakesWhatHasAnOrder) {
  RegisterHistory history;
  history.read(0, 1, 2);
  history.begin_write(5, 3);
  history.read(0, 4, 5);
  history.read(5, 6, 7);
  history.end_write(5, 8);
  history.read(5, 9, 10);
  EXPECT_EQ(history.problem(), "");
  EXPECT_EQ(history.reads(), 4U);
}

TEST(RegisterHistory, FindsAStaleRead) {
  RegisterHistory history;
  history.begin_write(5, 1);
  history.end_write(5, 2);
  history.read(0, 3, 4);
  EXPECT_NE(history.problem(), "");
}

TEST(RegisterHistory, FindsTwoReadsThatSeeWritesInDifferentOrders) {
  RegisterHistory history;
  history.begin_write(5, 1);
  history.begin_write(6, 1);
  history.end_write(5, 100);
  history.end_write(6, 100);
  history.read(5, 2, 3);
  history.read(6, 4, 5);
  EXPECT_EQ(history.problem(), "");
  history.read(5, 6, 7);
  EXPECT_NE(history.problem(), "");
}

TEST(RegisterHistory, FindsALostWrite) {
  RegisterHistory history;
  history.begin_write(5, 1);
  history.end_write(5, 2);
  history.begin_write(6, 3);
  history.end_write(6, 4);
  history.read(5, 5, 6);
  EXPECT_NE(history.problem(), "");
}

TEST(RegisterHistory, LetsAWriteThatNeverEndedTakeEffectOrNot) {
  RegisterHistory history;
  history.begin_write(5, 1);
  history.read(0, 10, 11);
  EXPECT_EQ(history.problem(), "");
  history.read(5, 12, 13);
  EXPECT_EQ(history.problem(), "");
  history.read(0, 14, 15);
  EXPECT_NE(history.problem(), "");
}

TEST(RegisterHistory, FindsAReadOfTheFuture) {
  RegisterHistory history;
  history.read(5, 1, 2);
  history.begin_write(6, 3);
  EXPECT_NE(history.problem(), "");
}

}  // namespace
}  // namespace cairn::cluster
