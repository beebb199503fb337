// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/slot_offers.h"

#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

constexpr std::uint16_t kSlot = 3;
constexpr std::uint32_t kToken = 77;

class SlotOffersTest : public ::testing::Test {
 protected:
  void SetUp() override { offers_.add(kSlot); }
  SlotOffer& word() { return memory_.slot(kSlot).offer; }
  SlotClaim claim() { return {kSlot, word().number_if_open(), kToken}; }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  KeptMemory kept_ = std::move(KeptMemory::create().value());
  SlotOffers offers_{memory_, kept_};
};

TEST_F(SlotOffersTest, ATakenSlotCountsUntilItsGreetingIsRead) {
  const SlotClaim claimed = claim();
  EXPECT_EQ(offers_.taken_count(), 0u);
  ASSERT_TRUE(word().take(claimed));
  EXPECT_EQ(offers_.taken_count(), 1u);
  EXPECT_FALSE(offers_.end_round()) << "the round may have passed the greeting already";
  EXPECT_EQ(offers_.taken_count(), 1u);
  EXPECT_FALSE(offers_.withdraw_one());
  EXPECT_TRUE(offers_.grant(claimed));
  offers_.end_of(kSlot);
  EXPECT_EQ(offers_.taken_count(), 0u);
  EXPECT_EQ(offers_.count(), 0u);
}

TEST_F(SlotOffersTest, RoundsBeforeAWordWasSeenTakenDoNotCount) {
  for (int round = 0; round < 5; ++round) EXPECT_FALSE(offers_.end_round());
  ASSERT_TRUE(word().take(claim()));
  EXPECT_FALSE(offers_.end_round());
  EXPECT_EQ(offers_.taken_count(), 1u);
}

TEST_F(SlotOffersTest, AWordWithoutAGreetingIsStrayAndItsSlotIsSetAside) {
  const SlotClaim claimed = claim();
  ASSERT_TRUE(word().take(claimed));
  EXPECT_EQ(offers_.taken_count(), 1u);
  EXPECT_FALSE(offers_.end_round());
  EXPECT_TRUE(offers_.end_round()) << "somebody may wait for this slot";
  EXPECT_EQ(offers_.taken_count(), 0u);
  EXPECT_EQ(offers_.count(), 1u);
  EXPECT_FALSE(offers_.withdraw_one());
  EXPECT_FALSE(offers_.end_round());
  EXPECT_TRUE(offers_.grant(claimed)) << "a greeting that comes after all";
}

}  // namespace
}  // namespace cairn::node
