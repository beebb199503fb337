// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_score.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace cairn {
namespace {

// The equation as it stands, over all accesses.
double exact_sum(const std::vector<double>& times, double now, double base = 2) {
  long double sum = 0;
  const auto n = static_cast<long double>(times.size());
  for (const double time : times)
    sum += std::pow(1 / static_cast<long double>(base), static_cast<long double>(now - time) / n);
  return static_cast<double>(sum);
}

TEST(HeatScore, IsTheSumOfTheEquation) {
  HeatScore score;
  EXPECT_EQ(score.at(5), 0);
  score.add(0);
  EXPECT_DOUBLE_EQ(score.at(0), 1);
  EXPECT_DOUBLE_EQ(score.at(2), 0.25) << "one reference: half of it each step";
  score.add(3);
  score.add(6);
  // Three references: a half in three steps. 1/4 + 1/2 + 1.
  EXPECT_DOUBLE_EQ(score.at(6), 1.75);
  EXPECT_DOUBLE_EQ(score.at(9), 0.875);
  EXPECT_EQ(score.references(), 3U);
  EXPECT_EQ(score.error_max(), 0);
}

TEST(HeatScore, ALargerBaseFadesFaster) {
  const HeatDecay decay = HeatDecay::of(4);
  HeatScore score;
  score.add(0, decay);
  score.add(1, decay);
  // (1/4)^(2/2) + (1/4)^(1/2)
  EXPECT_NEAR(score.at(2, decay), 0.75, 1e-12);
  EXPECT_EQ(HeatDecay::of(1).log_base, HeatDecay{}.log_base) << "p is 2 at least";
}

TEST(HeatScore, FadesAsOneBetweenAccesses) {
  HeatScore score;
  for (const double time : {1.0, 4.0, 4.5, 9.0, 11.0}) score.add(time);
  const double at_last = score.at(11);
  for (const double later : {0.5, 3.0, 40.0})
    EXPECT_NEAR(score.at(11 + later), at_last * std::pow(0.5, later / 5), 1e-12);
}

TEST(HeatScore, IsExactForAsManyTimesAsThereAreRuns) {
  const std::vector<double> times = {0, 0.5, 7, 7.25, 100, 101};
  ASSERT_EQ(times.size(), HeatScore::kRunsMax);
  std::vector<double> so_far;
  HeatScore score;
  for (const double time : times) {
    score.add(time);
    so_far.push_back(time);
    EXPECT_NEAR(score.at(102), exact_sum(so_far, 102), 1e-12);
  }
  for (int again = 0; again < 1000; ++again) {
    score.add(101);
    so_far.push_back(101);
  }
  EXPECT_NEAR(score.at(110), exact_sum(so_far, 110), 1e-9) << "one time is one run";
  EXPECT_EQ(score.error_max(), 0);
}

// A pattern of accesses gives the distance to the next one.
struct AccessPattern {
  std::string name;
  std::function<double(std::mt19937_64&, unsigned)> next;
};

double uniform(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

std::vector<AccessPattern> access_patterns() {
  return {
      {"every tenth of a step", [](auto&, unsigned) { return 0.1; }},
      {"every step", [](auto&, unsigned) { return 1.0; }},
      {"every four steps", [](auto&, unsigned) { return 4.0; }},
      {"at random", [](auto& random, unsigned) { return -std::log(1 - uniform(random)); }},
      {"bursts",
       [](auto& random, unsigned at) { return at % 50 == 0 ? 60.0 : uniform(random) / 50; }},
      {"pauses of all lengths",
       [](auto& random, unsigned) { return std::pow(10, 4 * uniform(random) - 3); }},
      {"ever slower", [](auto&, unsigned at) { return 0.01 * at; }},
      {"ever faster", [](auto&, unsigned at) { return 20.0 / (1 + at); }},
  };
}

// Largest errors, stated and real, over an access pattern.
struct LargestErrors {
  double stated = 0;
  double real = 0;
};

LargestErrors compare_with_exact_sum(const AccessPattern& pattern, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  HeatScore score;
  std::vector<double> times;
  double now = 0;
  LargestErrors largest;
  for (unsigned at = 0; at < 1000; ++at) {
    now += pattern.next(random, at);
    times.push_back(now);
    score.add(now);
    // The equation takes all accesses anew each time.
    if (at > 40 && at % 16 != 0) continue;
    const double later = now + 3 * uniform(random);
    const double exact = exact_sum(times, later);
    const double ours = score.at(later);
    const double stated = score.error_max();
    EXPECT_LE(ours, exact * (1 + 1e-9)) << "access " << at;
    EXPECT_GE(ours * std::exp(stated), exact * (1 - 1e-9)) << "access " << at;
    largest.stated = std::max(largest.stated, stated);
    largest.real = std::max(largest.real, std::log(exact / ours));
  }
  return largest;
}

TEST(HeatScore, TheExactSumLiesWithinTheStatedError) {
  for (const AccessPattern& pattern : access_patterns()) {
    LargestErrors largest;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(pattern.name + ", seed " + std::to_string(seed));
      const LargestErrors errors = compare_with_exact_sum(pattern, seed);
      largest.stated = std::max(largest.stated, errors.stated);
      largest.real = std::max(largest.real, errors.real);
      if (HasFailure()) return;
    }
    std::printf("%-24s stated %.2f %%, real %.2f %% at most\n", pattern.name.c_str(),
                100 * std::expm1(largest.stated), 100 * std::expm1(largest.real));
    EXPECT_LT(largest.real, 0.025) << pattern.name;
    EXPECT_LT(largest.stated, 0.07) << pattern.name;
  }
}

TEST(HeatScore, ReportsMayComeInAnyOrder) {
  std::vector<double> times;
  HeatScore score;
  std::mt19937_64 random(3);
  for (int at = 0; at < 200; ++at) {
    times.push_back(20 * uniform(random));
    score.add(times.back());
    const double exact = exact_sum(times, 21);
    ASSERT_LE(score.at(21), exact * (1 + 1e-9));
    ASSERT_GE(score.at(21) * std::exp(score.error_max()), exact * (1 - 1e-9));
  }
}

TEST(HeatScore, TwoBecomeOneWithAllAccesses) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    HeatScore one;
    HeatScore other;
    std::vector<double> times;
    for (int at = 0; at < 300; ++at) {
      times.push_back(0.2 * at);
      (uniform(random) < 0.3 ? one : other).add(times.back());
    }
    one.merge(other);
    EXPECT_EQ(one.references(), times.size());
    const double exact = exact_sum(times, 70);
    EXPECT_LE(one.at(70), exact * (1 + 1e-9));
    EXPECT_GE(one.at(70) * std::exp(one.error_max()), exact * (1 - 1e-9));
  }
  HeatScore cold;
  cold.merge(HeatScore{});
  EXPECT_TRUE(cold.is_cold());
}

TEST(HeatScore, WeighsLessAndEndsCold) {
  HeatScore score;
  score.add(0);
  score.add(2);
  const double before = score.at(5);
  score.weaken(0.5);
  EXPECT_DOUBLE_EQ(score.at(5), before / 2);
  EXPECT_EQ(score.references(), 2U);
  for (int epoch = 0; epoch < 19; ++epoch) score.weaken(0.5);
  EXPECT_FALSE(score.is_cold());
  score.weaken(0.5);
  EXPECT_TRUE(score.is_cold());
  EXPECT_EQ(score.references(), 0U);
  EXPECT_EQ(score.at(5), 0);
}

TEST(HeatScore, TimeMayStandStill) {
  HeatScore score;
  score.add(1);
  score.add(2);
  const double before = score.at(3);
  score.shift(1e6);
  EXPECT_NEAR(score.at(3 + 1e6), before, 1e-9);
}

TEST(HeatScore, ScoresBelowAnyNumberKeepTheirLogarithm) {
  HeatScore score;
  score.add(0);
  EXPECT_EQ(score.at(1e6), 0);
  EXPECT_NEAR(score.logarithm_at(1e6), -1e6 * std::log(2), 1e-6);
}

TEST(FadingScore, LinesOfOneRateKeepTheirOrder) {
  HeatScore older;
  HeatScore newer;
  older.add(0);
  newer.add(3);
  const FadingScore one = older.fading();
  const FadingScore other = newer.fading();
  EXPECT_EQ(one.rate, other.rate);
  EXPECT_LT(one.level, other.level);
  EXPECT_NEAR(other.logarithm_at(10), newer.logarithm_at(10), 1e-12);
  EXPECT_NEAR(other.logarithm_at(10) - one.logarithm_at(10), 3 * std::log(2), 1e-12);
}

TEST(HeatScore, TakesNothingForAScoreThatIsNone) {
  using Run = HeatScore::Run;
  const double infinite = std::numeric_limits<double>::infinity();
  HeatScore score;
  EXPECT_TRUE(score.restore(std::vector<Run>{{1, 2, 0, 0}, {3, 1, 1, 1}}, 3));
  EXPECT_EQ(score.runs().size(), 2U);
  const std::vector<std::vector<Run>> wrong = {
      {{3, 1, 0, 0}, {1, 1, 0, 0}},
      {{std::nan(""), 1, 0, 0}},
      {{infinite, 1, 0, 0}},
      {{1e300, 1, 0, 0}},
      {{1, 0, 0, 0}},
      {{1, -1, 0, 0}},
      {{1, infinite, 0, 0}},
      {{1, 1, -1, 0}},
      {{1, 1, 0, std::nanf("")}},
      std::vector<Run>(HeatScore::kRunsMax + 1, Run{1, 1, 0, 0}),
  };
  for (const auto& runs : wrong) {
    EXPECT_FALSE(score.restore(runs, 2));
    EXPECT_TRUE(score.is_cold());
  }
  EXPECT_FALSE(score.restore(std::vector<Run>{{1, 1, 0, 0}}, 0));
  EXPECT_FALSE(score.restore({}, 1));
  EXPECT_TRUE(score.restore({}, 0));
}

TEST(HeatScore, IsBounded) {
  static_assert(sizeof(HeatScore) <= 152);
  HeatScore score;
  for (int at = 0; at < 100'000; ++at) score.add(at);
  EXPECT_EQ(score.runs().size(), HeatScore::kRunsMax);
  EXPECT_EQ(score.references(), 100'000U);
}

}  // namespace
}  // namespace cairn
