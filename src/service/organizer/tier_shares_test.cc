// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/tier_shares.h"

#include <gtest/gtest.h>

#include <numeric>

namespace cairn {
namespace {

AccountUse run(std::uint32_t used, std::uint32_t weight, std::uint32_t reserved = 0) {
  AccountUse account;
  account.used = used;
  account.weight = weight;
  account.reserved = reserved;
  return account;
}

TEST(TierShares, ARunAloneMayLoseAnythingButItsReservation) {
  TierUse use;
  use[0] = run(10, 0);
  use[1] = run(50, 100, 20);
  const auto gives = slabs_to_give(use, 5);
  EXPECT_EQ(gives[0], 10u);
  EXPECT_EQ(gives[1], 30u);
}

TEST(TierShares, WhatBelongsToNoRunLeavesFirst) {
  TierUse use;
  use[0] = run(3, 0);
  use[1] = run(50, 100);
  use[2] = run(50, 100);
  const auto gives = slabs_to_give(use, 5);
  EXPECT_EQ(gives[0], 3u);
  EXPECT_EQ(gives[1], 1u);
  EXPECT_EQ(gives[2], 1u);
}

TEST(TierShares, RunsComeDownToOneLevelByWeight) {
  TierUse use;
  use[1] = run(300, 300);
  use[2] = run(200, 100);
  EXPECT_EQ(slabs_to_give(use, 60)[1], 0u) << "the second has more than its share";
  EXPECT_EQ(slabs_to_give(use, 60)[2], 60u);
  const auto gives = slabs_to_give(use, 140);
  EXPECT_EQ(300 - gives[1], 3 * (200 - gives[2]));
  EXPECT_EQ(gives[1] + gives[2], 140u);
}

TEST(TierShares, ASmallRunKeepsWhatItHas) {
  TierUse use;
  use[1] = run(400, 100);
  use[2] = run(90, 1);
  use[3] = run(10, 100);
  const auto gives = slabs_to_give(use, 100);
  EXPECT_EQ(gives[3], 0u);
  EXPECT_GE(gives[1] + gives[2], 100u);
  EXPECT_LE(gives[1] + gives[2], 102u) << "rounded up for each run";
  EXPECT_GT(gives[2], 80u) << "its weight is little";
}

TEST(TierShares, NothingReservedOrPinnedIsGiven) {
  TierUse use;
  use[1] = run(100, 100, 80);
  use[2] = run(100, 100);
  use[2].movable = 10;
  const auto gives = slabs_to_give(use, 200);
  EXPECT_EQ(gives[1], 20u);
  EXPECT_EQ(gives[2], 10u);
}

// Whatever the numbers: no more than there is, as much as is wanted if there is, and no run that is
// fuller than another afterwards has given less than it could.
TEST(TierShares, HoldForAnyNumbers) {
  std::uint32_t state = 1;
  const auto random = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  for (int round = 0; round < 2000; ++round) {
    TierUse use;
    for (unsigned index = 1; index < 6; ++index)
      use[index] = run(random(300), 1 + random(1000), random(2) * random(100));
    const std::uint32_t wanted = random(600);
    const auto gives = slabs_to_give(use, wanted);
    std::uint32_t possible = 0;
    for (const AccountUse& account : use)
      possible += account.used > account.reserved ? account.used - account.reserved : 0;
    const std::uint32_t sum = std::accumulate(gives.begin(), gives.end(), 0U);
    EXPECT_GE(sum, std::min(wanted, possible));
    EXPECT_LE(sum, std::min(wanted, possible) + 5) << "rounded up for each run";
    for (unsigned index = 1; index < 6; ++index) {
      if (gives[index] == 0) continue;
      EXPECT_LE(use[index].reserved + gives[index], use[index].used);
      const double left =
          (use[index].used - use[index].reserved - gives[index]) / double(use[index].weight);
      for (unsigned other = 1; other < 6; ++other) {
        if (use[other].used <= use[other].reserved + gives[other] + 1) continue;
        const double rest = use[other].used - use[other].reserved - gives[other] - 1.0;
        EXPECT_LE(rest / use[other].weight, left + 1.0 / use[index].weight + 1e-9);
      }
    }
  }
}

TEST(TierShares, SharesAddUpToTheTier) {
  TierUse use;
  use[1] = run(0, 300, 100);
  use[2] = run(0, 100);
  EXPECT_EQ(fair_share(use, AccountId{1}, 500), 400u);
  EXPECT_EQ(fair_share(use, AccountId{2}, 500), 100u);
  EXPECT_EQ(fair_share(use, AccountId{3}, 500), 0u);
  EXPECT_TRUE(is_contended(use));
  use[2].weight = 0;
  EXPECT_FALSE(is_contended(use));
  EXPECT_EQ(fair_share(use, AccountId{1}, 500), 500u);
}

}  // namespace
}  // namespace cairn
