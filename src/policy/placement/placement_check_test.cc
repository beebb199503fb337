// SPDX-License-Identifier: Apache-2.0
// Each rule that a decision can break is found to be broken.
#include "policy/placement/placement_check.h"

#include <gtest/gtest.h>

#include <vector>

namespace cairn {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
using Kind = PlacementStep::Kind;

class PlacementCheck : public ::testing::Test {
 protected:
  PlacementCheck() {
    for (unsigned id = 0; id < 3; ++id) {
      tiers_.push_back(TierView{static_cast<TierId>(id), 8 * kMiB, 2 * kMiB, kMiB});
    }
    request_.bytes = 4 * kMiB;
  }
  void add(Kind kind, unsigned tier, std::uint64_t bytes) {
    placement_.add(kind, static_cast<TierId>(tier), bytes);
  }
  const char* fault() const { return fault_in(placement_, request_, tiers_); }

  std::vector<TierView> tiers_;
  PlacementRequest request_;
  Placement placement_;
};

TEST_F(PlacementCheck, SoundDecisionsChangeTheViewsAsTheySay) {
  add(Kind::kMakeRoom, 1, 512 << 10);
  add(Kind::kMakeRoom, 0, 256 << 10);
  add(Kind::kPlace, 0, kMiB + (256 << 10));
  EXPECT_EQ(fault(), nullptr);
  EXPECT_EQ(tiers_[0].free_bytes, 2 * kMiB);
  ASSERT_EQ(carry_out(placement_, request_, tiers_), nullptr);
  EXPECT_EQ(tiers_[0].free_bytes, kMiB);
  EXPECT_EQ(tiers_[1].free_bytes, 2 * kMiB + (256 << 10));
  EXPECT_EQ(tiers_[2].free_bytes, kMiB + (512 << 10));
}

TEST_F(PlacementCheck, NoMoreThanTheRoom) {
  add(Kind::kPlace, 0, kMiB + 1);
  EXPECT_STREQ(fault(), "places more than there is room for");
}

TEST_F(PlacementCheck, NoMoreThanWasAskedFor) {
  request_.bytes = kMiB;
  add(Kind::kPlace, 0, kMiB);
  add(Kind::kPlace, 1, 1);
  EXPECT_STREQ(fault(), "places more than was asked for");
}

TEST_F(PlacementCheck, OnlyTiersThatThereAreAndAreAllowed) {
  request_.fastest = static_cast<TierId>(1);
  add(Kind::kPlace, 0, 1);
  EXPECT_STREQ(fault(), "names a tier above the fastest allowed");
  placement_ = {};
  add(Kind::kPlace, 3, 1);
  EXPECT_STREQ(fault(), "names a tier that does not exist");
}

TEST_F(PlacementCheck, EachTierOnceAndRoomBeforePlaces) {
  add(Kind::kPlace, 0, 1);
  add(Kind::kPlace, 0, 1);
  EXPECT_STREQ(fault(), "places in one tier twice");
  placement_ = {};
  add(Kind::kMakeRoom, 0, 1);
  add(Kind::kMakeRoom, 0, 1);
  EXPECT_STREQ(fault(), "makes room in one tier twice");
  placement_ = {};
  add(Kind::kPlace, 0, 1);
  add(Kind::kMakeRoom, 0, 1);
  EXPECT_STREQ(fault(), "makes room after it placed");
}

TEST_F(PlacementCheck, OnlyWhatIsThereIsMovedToWhereItFits) {
  add(Kind::kMakeRoom, 0, 6 * kMiB + 1);
  EXPECT_STREQ(fault(), "moves more than there is in a tier");
  placement_ = {};
  add(Kind::kMakeRoom, 0, 2 * kMiB + 1);
  EXPECT_STREQ(fault(), "moves more than the tiers below have room for");
  placement_ = {};
  add(Kind::kMakeRoom, 2, 1);
  EXPECT_STREQ(fault(), "moves more than the tiers below have room for");
}

TEST_F(PlacementCheck, WhatWasMovedTakesRoomBelow) {
  add(Kind::kMakeRoom, 0, 2 * kMiB);
  add(Kind::kPlace, 1, 1);
  EXPECT_STREQ(fault(), "places more than there is room for");
}

TEST_F(PlacementCheck, UnknownStepsAndCounts) {
  placement_.steps[0] = {static_cast<Kind>(7), TierId::kMemory, 1};
  placement_.count = 1;
  EXPECT_STREQ(fault(), "has a step of an unknown kind");
  placement_.count = Placement::kStepsMax + 1;
  EXPECT_STREQ(fault(), "has too many steps");
  placement_.count = 0;
  tiers_.resize(kTiersMax + 1);
  EXPECT_STREQ(fault(), "is about too many tiers");
}

}  // namespace
}  // namespace cairn
