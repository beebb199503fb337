// SPDX-License-Identifier: Apache-2.0
// Which of several timings is taken, and what is said when they disagree.
#include "cli/advice/machine_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "cli/advice/advice_sentences.h"

namespace cairn::cli {
namespace {

// Rates in turn, the last one for ever, and how many were asked for.
class Rates {
 public:
  explicit Rates(std::vector<double> rates) : rates_(std::move(rates)) {}
  BestRate best() {
    return best_rate([this] { return rates_[std::min(asked_++, rates_.size() - 1)]; });
  }
  std::size_t asked() const { return asked_; }

 private:
  std::vector<double> rates_;
  std::size_t asked_ = 0;
};

TEST(BestRateTest, OneThatIsDisturbedOnceIsNotRepeated) {
  Rates rates({100, 40, 95, 98, 97});
  const BestRate best = rates.best();
  EXPECT_EQ(best.rate, 100);
  EXPECT_NEAR(best.spread, 100.0 / 97 - 1, 1e-9);
  EXPECT_EQ(rates.asked(), 5U);
}

TEST(BestRateTest, ABusyMachineIsTimedAgain) {
  Rates rates({100, 40, 50, 60, 30, 99, 99, 98, 97, 96});
  const BestRate best = rates.best();
  EXPECT_EQ(best.rate, 100);
  EXPECT_NEAR(best.spread, 100.0 / 98 - 1, 1e-9);
  EXPECT_EQ(rates.asked(), 10U);
}

TEST(BestRateTest, OneThatStaysBusyHasItsSpread) {
  Rates rates({100, 50});
  const BestRate best = rates.best();
  EXPECT_EQ(best.rate, 100);
  EXPECT_NEAR(best.spread, 1, 1e-9);
  EXPECT_EQ(rates.asked(), 15U);
}

TEST(BestRateTest, WhatCannotBeMeasuredIsAskedOnce) {
  Rates rates({0});
  EXPECT_EQ(rates.best().rate, 0);
  EXPECT_EQ(rates.asked(), 1U);
}

TEST(BestRateTest, ALargeSpreadIsAmongTheAssumptions) {
  AdviceTold told;
  told.question.timing_spread = 0.6;
  EXPECT_THAT(assumption_sentences(told), ::testing::Contains(::testing::HasSubstr("60 %")));
  told.question.timing_spread = kSpreadMax;
  EXPECT_THAT(assumption_sentences(told),
              ::testing::Not(::testing::Contains(::testing::HasSubstr("timings"))));
}

}  // namespace
}  // namespace cairn::cli
