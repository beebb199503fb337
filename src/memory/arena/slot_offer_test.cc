// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/slot_offer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace cairn {
namespace {

constexpr std::uint32_t kNumber = 7;

SlotClaim claim_of(std::uint32_t token, std::uint32_t number = kNumber) {
  return {2, number, token};
}

TEST(SlotOffer, OneClaimantTakesIt) {
  SlotOffer offer{};
  EXPECT_EQ(offer.number_if_open(), 0u);
  EXPECT_FALSE(offer.take(claim_of(1)));
  offer.open(kNumber);
  EXPECT_EQ(offer.number_if_open(), kNumber);
  EXPECT_FALSE(offer.is_taken(kNumber));
  EXPECT_TRUE(offer.take(claim_of(1)));
  EXPECT_TRUE(offer.is_taken(kNumber));
  EXPECT_EQ(offer.number_if_open(), 0u);
  EXPECT_FALSE(offer.take(claim_of(2)));
  EXPECT_TRUE(offer.take(claim_of(1)));  // it is its own still
}

TEST(SlotOffer, TheServiceTakesItForTheGreetingThatItHasRead) {
  SlotOffer offer{};
  offer.open(kNumber);
  EXPECT_TRUE(offer.take(claim_of(1)));  // the service
  EXPECT_TRUE(offer.take(claim_of(1)));  // the client, afterwards
  EXPECT_FALSE(offer.take(claim_of(2)));
}

TEST(SlotOffer, WithdrawnOnlyWhileItIsOpen) {
  SlotOffer offer{};
  offer.open(kNumber);
  EXPECT_FALSE(offer.withdraw(kNumber - 1));
  EXPECT_TRUE(offer.withdraw(kNumber));
  EXPECT_FALSE(offer.take(claim_of(1)));
  offer.open(kNumber + 1);
  EXPECT_FALSE(offer.take(claim_of(1)));  // of the earlier offer
  EXPECT_TRUE(offer.take(claim_of(1, kNumber + 1)));
  EXPECT_FALSE(offer.withdraw(kNumber + 1));
  offer.clear();
  EXPECT_FALSE(offer.take(claim_of(1, kNumber + 1)));
}

TEST(SlotOffer, ManyClaimantsAndOneWinner) {
  for (std::uint32_t round = 1; round < 200; ++round) {
    SlotOffer offer{};
    std::atomic<unsigned> winners{0};
    offer.open(round);
    std::vector<std::thread> claimants;
    for (std::uint32_t token = 1; token <= 4; ++token) {
      claimants.emplace_back([&, token] {
        if (offer.take(claim_of(token, round))) winners.fetch_add(1);
      });
    }
    for (std::thread& claimant : claimants) claimant.join();
    ASSERT_EQ(winners.load(), 1u);
  }
}

}  // namespace
}  // namespace cairn
