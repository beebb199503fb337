// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/learned_reuse.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "policy/replacement/recency_expert.h"

namespace cairn {
namespace {

using Histogram = ReuseTimes::Histogram;

std::vector<Histogram> nobody() {
  return std::vector<Histogram>(ReuseTimes::kClasses, Histogram{});
}

TEST(ReuseTimes, BinsAreQuartersOfAnOctave) {
  for (unsigned age = 0; age < 4; ++age) EXPECT_EQ(ReuseTimes::bin_of(age), age);
  unsigned previous = 3;
  for (std::uint64_t age = 4; age < 1'000'000; age += 1 + age / 100) {
    const unsigned bin = ReuseTimes::bin_of(age);
    EXPECT_GE(bin, previous);
    EXPECT_NEAR(bin, 4 + 4 * (std::log2(static_cast<double>(age)) - 2), 1.0) << age;
    previous = bin;
  }
  EXPECT_EQ(ReuseTimes::bin_of(8), 8U);
  EXPECT_EQ(ReuseTimes::bin_of(1024), 36U);
  EXPECT_EQ(ReuseTimes::bin_of(UINT64_MAX), ReuseTimes::kBins - 1);
}

TEST(ReuseTimes, ClassesAreOfTimesSeenAndOfTheLastInterval) {
  const ReuseTimes times(100);
  EXPECT_EQ(times.class_of(1, 0), 0U);
  EXPECT_EQ(times.class_of(2, 10), 1 * ReuseTimes::kIntervals + 1);
  EXPECT_EQ(times.class_of(2, 99), 1 * ReuseTimes::kIntervals + 2);
  EXPECT_EQ(times.class_of(3, 100), 2 * ReuseTimes::kIntervals + 3);
  EXPECT_EQ(times.class_of(5, 400), 3 * ReuseTimes::kIntervals + 4);
  EXPECT_EQ(times.class_of(UINT32_MAX, 0), 7 * ReuseTimes::kIntervals + 1);
}

// Pages that always come back after 64 references: the closer to that, the more a place is worth.
TEST(ReuseTimes, WhatIsAboutToComeBackIsWorthMost) {
  ReuseTimes times(100);
  for (int page = 0; page < 10'000; ++page) times.note_reuse(7, 64);
  times.learn(nobody());
  EXPECT_GT(times.index(7, 60), 3 * times.index(7, 16));
  EXPECT_GT(times.index(7, 16), times.index(7, 1));
  // With nearly all mass in one bin of 64 to 76, what it is worth is known in numbers: a hit after
  // the rest of the way.
  EXPECT_NEAR(times.index(7, 32), 1.0 / (70 - 32), 0.01);
  EXPECT_GT(times.index(7, 60), 10 * times.index(7, 300)) << "it should have come long ago";
}

// A page that is still waited for says that it has not come back yet, not that it never will.
TEST(ReuseTimes, OpenIntervalsAreCensored) {
  ReuseTimes censored(100);
  ReuseTimes given_up(100);
  std::vector<Histogram> waiting = nobody();
  for (int page = 0; page < 1000; ++page) {
    censored.note_reuse(7, 64);
    given_up.note_reuse(7, 64);
    waiting[7][ReuseTimes::bin_of(8)] += 1;
    given_up.note_given_up(7);
  }
  censored.learn(waiting);
  given_up.learn(nobody());
  EXPECT_GT(censored.index(7, 50), 1.6F * given_up.index(7, 50));
}

TEST(ReuseTimes, AClassWithoutPagesLeansOnTheOthers) {
  ReuseTimes times(100);
  const float before = times.index(8, 50);
  for (int page = 0; page < 10'000; ++page) times.note_reuse(7, 64);
  times.learn(nobody());
  EXPECT_GT(times.index(8, 50), 1.5F * before) << "7 and 8 were seen equally often";
}

unsigned misses_of(Expert& expert, const std::vector<PageId>& pages) {
  unsigned misses = 0;
  for (const PageId page : pages) misses += expert.reference(page) ? 0 : 1;
  return misses;
}

// A loop of 150 pages through 100: lru misses always, the best possible a third of the time.
TEST(LearnedReuse, FindsALoop) {
  std::vector<PageId> loop;
  for (unsigned turn = 0; turn < 30'000; ++turn) loop.push_back(static_cast<PageId>(turn % 150));
  LearnedReuse learned(100);
  EXPECT_LT(misses_of(learned, loop), 30'000 * 0.42);
}

// Popular pages under a scan of pages that never come back.
TEST(LearnedReuse, KeepsWhatComesBackFromAScan) {
  std::vector<PageId> pages;
  RandomSource random(11);
  for (unsigned turn = 0; turn < 30'000; ++turn) {
    pages.push_back(static_cast<PageId>(random.below(80)));
    pages.push_back(static_cast<PageId>(1000 + turn));
    pages.push_back(static_cast<PageId>(100'000 + turn));
  }
  LearnedReuse learned(100);
  RecencyExpert lru(RecencyExpert::Order::kLru, 100);
  const unsigned ours = misses_of(learned, pages) - 60'000;
  const unsigned others = misses_of(lru, pages) - 60'000;
  EXPECT_LT(ours, 1500U) << "lru misses " << others << " of 30000";
  EXPECT_GT(others, 15'000U);
}

TEST(LearnedReuse, LearnsFromASampleNearlyAsWell) {
  std::vector<PageId> loop;
  for (unsigned turn = 0; turn < 60'000; ++turn) loop.push_back(static_cast<PageId>(turn % 600));
  LearnedReuse::Options options;
  options.learn_from_one_in = 8;
  LearnedReuse sampled(400, options);
  EXPECT_LT(misses_of(sampled, loop), 60'000 * 0.45);
}

}  // namespace
}  // namespace cairn
