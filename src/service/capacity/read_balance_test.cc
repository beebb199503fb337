// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/read_balance.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace cairn::node {
namespace {

constexpr double kTier = 500e6;

// What many readers get when `share` of their reads go to a store of this rate: whichever of the
// two is busy longer decides.
struct Devices {
  double store = 0;
  double total(std::uint32_t share) const {
    const double around = static_cast<double>(share) / ReadBalance::kWhole;
    const double by_tier = around < 1 ? kTier / (1 - around) : 1e18;
    return around > 0 ? std::min(by_tier, store / around) : by_tier;
  }
};

double settled(const Devices& devices, std::uint32_t* share) {
  ReadBalance balance;
  double sum = 0;
  for (int step = 0; step < 200; ++step) {
    const double total = devices.total(*share);
    const double around = total * *share / ReadBalance::kWhole;
    if (step >= 100) sum += total;
    *share = balance.step(total - around, around, kTier);
  }
  return sum / 100;
}

TEST(ReadBalance, AStoreAsFastAsTheTierTakesNearlyHalf) {
  std::uint32_t share = 0;
  EXPECT_GT(settled(Devices{500e6}, &share), 1.7 * kTier);
  EXPECT_GT(share, ReadBalance::kWhole / 4);
}

TEST(ReadBalance, ASlowStoreIsHardlyAsked) {
  std::uint32_t share = 0;
  EXPECT_GT(settled(Devices{20e6}, &share), 0.95 * kTier);
  EXPECT_LE(share, ReadBalance::kStep);
}

TEST(ReadBalance, WithoutABottleneckAllComesFromTheTier) {
  ReadBalance balance;
  for (int step = 0; step < 10; ++step) EXPECT_EQ(balance.step(0.5 * kTier, 0, kTier), 0U);
  EXPECT_EQ(balance.step(kTier, 0, 0), 0U) << "its bandwidth is not known";
  EXPECT_GT(balance.step(0.9 * kTier, 0, kTier), 0U);
  EXPECT_EQ(balance.step(0.1 * kTier, 0.1 * kTier, kTier), 0U) << "it is over";
}

}  // namespace
}  // namespace cairn::node
