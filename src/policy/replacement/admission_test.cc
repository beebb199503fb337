// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/admission.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint32_t kRoom = 64;
constexpr std::uint32_t kRoomBelow = 128;
constexpr AdmissionCosts kDisk{8e-3, 0.2e-3};  // below a disk, a write costs little

// A program that reads so many segments in a loop through a tier that keeps the last kRoom.
class Loop {
 public:
  explicit Loop(std::uint32_t length) : length_(length) {}
  void go_on(ReturnRates& rates, std::uint32_t reads) {
    for (; reads > 0; --reads, ++now_) {
      if (now_ >= kRoom)
        rates.note_left((now_ - kRoom) % length_, static_cast<std::uint32_t>(now_ / length_) + 1);
      rates.note_used(now_ % length_);
    }
  }

 private:
  const std::uint64_t length_;
  std::uint64_t now_ = 0;
};

TEST(Admission, EachReadBelowSavesItsTime) {
  EXPECT_TRUE(is_worth_admitting(0.5, {1e-3, 0.9e-3})) << "one read for a write";
  EXPECT_FALSE(is_worth_admitting(0.5, {1e-3, 1.1e-3}));
  EXPECT_TRUE(is_worth_admitting(0.9, {1e-3, 8e-3})) << "nine reads for a write";
  EXPECT_FALSE(is_worth_admitting(0.9, {1e-3, 10e-3}));
  EXPECT_TRUE(is_worth_admitting(1, {1e-6, 1}));
  EXPECT_FALSE(is_worth_admitting(1, {0, 0})) << "nothing is saved";
  EXPECT_FALSE(is_worth_admitting(0.01, {1, 0})) << "too few to be told from none";
  EXPECT_FALSE(is_worth_admitting(0, {1, 0}));
}

TEST(Admission, ClassesAreByPowersOfTwoOfTheUses) {
  EXPECT_EQ(ReturnRates::class_of(0), 0U);
  EXPECT_EQ(ReturnRates::class_of(1), 0U);
  EXPECT_EQ(ReturnRates::class_of(2), 1U);
  EXPECT_EQ(ReturnRates::class_of(3), 1U);
  EXPECT_EQ(ReturnRates::class_of(4), 2U);
  EXPECT_EQ(ReturnRates::class_of(UINT32_MAX), 3U);
}

TEST(Admission, NothingIsKnownBeforeAnythingIsOverdue) {
  ReturnRates rates(kRoom, kRoomBelow);
  for (std::uint64_t segment = 0; segment < kRoom / 2; ++segment) rates.note_left(segment, 1);
  EXPECT_EQ(rates.chance(0), 1);
}

TEST(Admission, WhatNeverReturnsIsNotWorthIt) {
  ReturnRates rates(kRoom, kRoomBelow);
  std::uint64_t segment = 0;
  for (; segment < kRoom; ++segment) rates.note_left(segment, 1);
  EXPECT_FALSE(is_worth_admitting(rates.chance(0), kDisk))
      << "when the tier has been replaced once";
  EXPECT_EQ(rates.chance(1), 1) << "of others nothing is known";
  for (; segment < 100 * kRoom; ++segment) {
    rates.note_left(segment, 1);
    ASSERT_FALSE(is_worth_admitting(rates.chance(0), kDisk)) << segment;
  }
}

TEST(Admission, ALoopThatFitsBelowIsWorthItFromItsSecondRoundOn) {
  for (const std::uint32_t length : {kRoom + 8, kRoom * 3 / 2, kRoom * 2, kRoom * 5 / 2}) {
    ReturnRates rates(kRoom, kRoomBelow);
    Loop loop(length);
    loop.go_on(rates, 2 * length);
    for (int turn = 0; turn < 4000; ++turn) {
      loop.go_on(rates, 1);
      for (unsigned page_class = 0; page_class < ReturnRates::kClasses; ++page_class)
        ASSERT_TRUE(is_worth_admitting(rates.chance(page_class), kDisk)) << length << ", " << turn;
    }
  }
}

TEST(Admission, ALoopThatIsLongerThanAllTiersIsNot) {
  ReturnRates rates(kRoom, kRoomBelow);
  Loop loop(4 * kRoom);
  loop.go_on(rates, 40 * kRoom);
  EXPECT_FALSE(is_worth_admitting(rates.chance(3), kDisk));
}

TEST(Admission, AfterAScanALoopIsSeen) {
  ReturnRates rates(kRoom, kRoomBelow);
  for (std::uint64_t segment = 0; segment < 5000; ++segment) rates.note_left(segment << 32, 1);
  ASSERT_FALSE(is_worth_admitting(rates.chance(0), kDisk));
  Loop loop(kRoom * 3 / 2);
  loop.go_on(rates, 4 * kRoom);
  EXPECT_TRUE(is_worth_admitting(rates.chance(1), kDisk));
}

TEST(Admission, WhatIsForgottenIsNotCounted) {
  ReturnRates rates(kRoom, kRoomBelow);
  for (std::uint64_t segment = 0; segment < kRoom; ++segment) rates.note_left(segment, 1);
  for (std::uint64_t segment = 0; segment < kRoom; ++segment) rates.forget(segment);
  EXPECT_EQ(rates.waited_for(), 0U);
  EXPECT_EQ(rates.chance(0), 1);
  for (std::uint64_t segment = 0; segment < 4 * kRoom; ++segment)
    rates.note_left(1000 + segment, 1);
  EXPECT_LT(rates.chance(0), 0.1);
}

// With a large tier below a small one it waits for a bounded number, and sees the returns all the
// same.
TEST(Admission, RemembersABoundedNumberOfSegments) {
  constexpr std::uint64_t kHuge = 1'000'000;
  ReturnRates rates(kRoom, kHuge);
  for (std::uint64_t segment = 0; segment < 3 * kHuge; ++segment) rates.note_left(segment * 8, 1);
  EXPECT_LE(rates.waited_for(), 2 * 4096U);
  EXPECT_FALSE(is_worth_admitting(rates.chance(0), kDisk));
}

}  // namespace
}  // namespace cairn
