// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/weight_sharing.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "policy/replacement/recency_expert.h"
#include "policy/replacement/s3_fifo.h"
#include "policy/replacement/ws_plus.h"

namespace cairn {
namespace {

PageId page(unsigned number) { return static_cast<PageId>(number); }

TEST(WeightSharing, AMissOnWhatTheEpochEvictedCostsWhoeverNamedIt) {
  WeightSharing expert(2);
  const double third = 1.0 / 3;
  // Epoch 1: four misses. c evicts a, named by lru and by lfu, whose pages are equally often used.
  // Then a comes back: one misprediction of four misses is a quarter, which counts.
  (void)expert.reference(page('a'));
  (void)expert.reference(page('b'));
  (void)expert.reference(page('c'));
  ASSERT_EQ(expert.evicted().size(), 1U);
  ASSERT_EQ(expert.evicted().front(), page('a'));
  EXPECT_EQ(expert.weights()[0], third);
  (void)expert.reference(page('a'));
  const auto weights = expert.weights();
  // The random expert may have named it as well: then all are equal as before.
  if (weights[2] != weights[0]) {
    const double lost = 2 * third / 2;
    const double sum = 1 - lost + 0.1 * lost;
    EXPECT_NEAR(weights[0], (third / 2 + 0.1 * lost / 3) / sum, 1e-12);
    EXPECT_NEAR(weights[1], weights[0], 1e-12);
    EXPECT_NEAR(weights[2], (third + 0.1 * lost / 3) / sum, 1e-12);
  }
  EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-12);
}

TEST(WeightSharing, AMissInALaterEpochCostsNothing) {
  WeightSharing expert(2);
  for (const char letter : {'a', 'b', 'c', 'd'}) (void)expert.reference(page(letter));
  // A new epoch: what left in the last one is nobody's mistake.
  for (const char letter : {'a', 'e', 'f', 'g'}) (void)expert.reference(page(letter));
  for (const double weight : expert.weights()) EXPECT_NEAR(weight, 1.0 / 3, 1e-12);
}

std::vector<std::unique_ptr<Expert>> lru_and_mru(std::uint32_t capacity) {
  std::vector<std::unique_ptr<Expert>> experts;
  experts.push_back(std::make_unique<RecencyExpert>(RecencyExpert::Order::kLru, capacity));
  experts.push_back(std::make_unique<RecencyExpert>(RecencyExpert::Order::kMru, capacity));
  return experts;
}

TEST(WsPlus, FollowsTheExpertThatMissesLess) {
  constexpr std::uint32_t kCapacity = 100;
  constexpr unsigned kTurns = 20'000;
  WsPlus followed(kCapacity, lru_and_mru(kCapacity));
  RecencyExpert mru(RecencyExpert::Order::kMru, kCapacity);
  unsigned misses = 0;
  unsigned best = 0;
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    misses += followed.reference(page(turn % 150)) ? 0 : 1;
    best += mru.reference(page(turn % 150)) ? 0 : 1;
  }
  EXPECT_STREQ(followed.leader().name(), "mru");
  EXPECT_EQ(followed.changes(), 1U);
  // A change costs no more than the capacity, and is made after about half of that in advantage.
  EXPECT_LE(misses, best + 3 * kCapacity);
}

TEST(WsPlus, EvictsWhatItsLeaderDoesNotHold) {
  WsPlus followed(16);
  RandomSource random(5);
  for (int turn = 0; turn < 20'000; ++turn) {
    const std::uint64_t changes = followed.changes();
    (void)followed.reference(page(random.below(1 + random.below(100))));
    if (followed.evicted().empty() || followed.changes() != changes) continue;
    ASSERT_FALSE(followed.leader().holds(followed.evicted().front())) << turn;
  }
  EXPECT_GT(followed.changes(), 0U) << "one leader for ever shows nothing";
}

// When experts take turns at being ahead, to change each time is dearer than to stay.
TEST(WsPlus, ChangesThatDoNotPayBecomeDearer) {
  constexpr std::uint32_t kCapacity = 50;
  WsPlus followed(kCapacity, lru_and_mru(kCapacity));
  std::uint64_t early = 0;
  constexpr unsigned kRounds = 400;
  for (unsigned round = 0; round < kRounds; ++round) {
    // A loop that suits mru, then pages that are new and used twice, which suits lru.
    for (unsigned turn = 0; turn < 150; ++turn) (void)followed.reference(page(turn % 75));
    for (unsigned turn = 0; turn < 75; ++turn) {
      const unsigned first = 1000 + (round * 75 + turn) % 3000;
      (void)followed.reference(page(first));
      (void)followed.reference(page(first));
    }
    if (round == kRounds / 8) early = followed.changes();
  }
  EXPECT_LT(followed.changes() - early, 7 * std::max<std::uint64_t>(early, 1))
      << "as often as at first";
}

}  // namespace
}  // namespace cairn
