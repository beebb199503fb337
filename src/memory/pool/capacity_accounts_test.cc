// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/capacity_accounts.h"

#include <gtest/gtest.h>

#include <memory>

namespace cairn {
namespace {

constexpr auto kFirst = AccountId{1};
constexpr auto kSecond = AccountId{2};

class TierAccountsTest : public testing::Test {
 protected:
  std::unique_ptr<TierAccounts> tier_{new TierAccounts()};
};

TEST_F(TierAccountsTest, EverythingIsForEverybodyWithoutReservations) {
  EXPECT_EQ(tier_->common(10), 10u);
  EXPECT_EQ(tier_->grant(AccountId::kNobody, 16, 10), 10u);
  EXPECT_EQ(tier_->grant(kFirst, 4, 10), 4u);
  EXPECT_EQ(tier_->overdrawn(kFirst, 4, 0), 0u);
}

TEST_F(TierAccountsTest, WhatIsReservedIsHeldBackUntilItIsUsed) {
  tier_->reserve(kFirst, 8);
  EXPECT_EQ(tier_->reserved_slabs(), 8u);
  EXPECT_EQ(tier_->held_back(), 8u);
  EXPECT_EQ(tier_->common(10), 2u);
  EXPECT_EQ(tier_->grant(kSecond, 16, 10), 2u);
  EXPECT_EQ(tier_->grant(kFirst, 16, 10), 10u) << "its own, and what is for everybody";
  EXPECT_EQ(tier_->grant(kSecond, 1, 8), 0u);
  EXPECT_EQ(tier_->grant(kFirst, 16, 8), 8u);
  tier_->charge(kFirst, 5);
  EXPECT_EQ(tier_->unused(kFirst), 3u);
  EXPECT_EQ(tier_->grant(kSecond, 16, 5), 2u);
  tier_->charge(kFirst, 5);
  EXPECT_EQ(tier_->held_back(), 0u) << "more is used than is reserved";
  EXPECT_EQ(tier_->grant(kFirst, 16, 2), 2u);
  tier_->discharge(kFirst, 9);
  EXPECT_EQ(tier_->held_back(), 7u) << "what is given back is held back again";
  tier_->reserve(kFirst, 0);
  EXPECT_EQ(tier_->common(10), 10u);
}

TEST_F(TierAccountsTest, WhoTookWhatIsHeldBackGivesItBack) {
  tier_->reserve(kFirst, 8);
  tier_->charge(kSecond, 4);
  EXPECT_EQ(tier_->overdrawn(kSecond, 4, 6), 2u);
  EXPECT_EQ(tier_->overdrawn(kSecond, 1, 6), 1u) << "no more than it has just taken";
  EXPECT_EQ(tier_->overdrawn(kSecond, 4, 8), 0u);
  tier_->charge(kFirst, 8);
  EXPECT_EQ(tier_->overdrawn(kFirst, 8, 0), 0u) << "it is its own";
}

TEST_F(TierAccountsTest, TheLastIsForThoseBelowTheirShare) {
  tier_->share_floor.store(5);
  tier_->accounts[1].share.store(30);
  tier_->accounts[2].share.store(10);
  tier_->charge(kFirst, 20);
  tier_->charge(kSecond, 20);
  EXPECT_EQ(tier_->grant(kSecond, 4, 6), 4u) << "there is enough for all";
  EXPECT_EQ(tier_->grant(kSecond, 4, 4), 0u);
  EXPECT_EQ(tier_->grant(kFirst, 4, 4), 4u);
}

TEST_F(TierAccountsTest, ACountThatADeathLeftTooLowIsNone) {
  tier_->discharge(kFirst, 1);
  EXPECT_EQ(tier_->used(kFirst), 0u);
}

}  // namespace
}  // namespace cairn
