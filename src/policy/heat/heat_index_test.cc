// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>

namespace cairn {
namespace {

SegmentKey segment_key(std::uint32_t object, std::uint32_t segment) {
  return {static_cast<ObjectIndex>(object), segment};
}

FadingScore line(double level, double rate = 1) { return {level, rate}; }

std::vector<SegmentKey> keys_of(const std::vector<RankedSegment>& ranked) {
  std::vector<SegmentKey> keys;
  for (const RankedSegment& one : ranked) keys.push_back(one.key);
  return keys;
}

TEST(HeatIndex, RanksByScore) {
  HeatIndex index(10);
  (void)index.set(segment_key(1, 0), line(3), 0);
  (void)index.set(segment_key(1, 1), line(5), 0);
  (void)index.set(segment_key(2, 0), line(4), 0);
  EXPECT_EQ(keys_of(index.hottest(2, 0)),
            (std::vector<SegmentKey>{segment_key(1, 1), segment_key(2, 0)}));
  EXPECT_EQ(keys_of(index.coldest(9, 0)),
            (std::vector<SegmentKey>{segment_key(1, 0), segment_key(2, 0), segment_key(1, 1)}));
  (void)index.set(segment_key(1, 0), line(9), 0);
  EXPECT_EQ(index.hottest(1, 2).front(), (RankedSegment{segment_key(1, 0), 7}));
  EXPECT_EQ(index.size(), 3U);
  EXPECT_EQ(index.rate_count(), 1U);
}

TEST(HeatIndex, WhatFadesSlowlyOvertakes) {
  HeatIndex index(10);
  (void)index.set(segment_key(1, 0), line(10, 1), 0);
  (void)index.set(segment_key(2, 0), line(5, 0.5), 0);
  EXPECT_EQ(index.hottest(1, 9).front().key, segment_key(1, 0));
  EXPECT_EQ(index.hottest(1, 11).front().key, segment_key(2, 0));
  EXPECT_EQ(index.coldest(1, 11).front().key, segment_key(1, 0));
  EXPECT_EQ(index.rate_count(), 2U);
}

TEST(HeatIndex, TheColdestLeavesWhenThereAreTooMany) {
  HeatIndex index(2);
  EXPECT_EQ(index.set(segment_key(1, 0), line(3, 1), 0), std::nullopt);
  EXPECT_EQ(index.set(segment_key(1, 1), line(2, 0.1), 0), std::nullopt);
  EXPECT_EQ(index.set(segment_key(1, 2), line(1, 1), 0), segment_key(1, 2)) << "itself";
  // At time 10 the first has faded to -7, the second to 1.
  EXPECT_EQ(index.set(segment_key(1, 3), line(12, 1), 10), segment_key(1, 0));
  EXPECT_EQ(index.size(), 2U);
  EXPECT_EQ(index.set(segment_key(1, 1), line(-100, 1), 10), std::nullopt) << "it was there";
}

TEST(HeatIndex, FilesAndSegmentsGo) {
  HeatIndex index(10);
  for (std::uint32_t segment = 0; segment < 3; ++segment) {
    (void)index.set(segment_key(1, segment), line(1), 0);
    (void)index.set(segment_key(2, segment), line(2, 0.5), 0);
  }
  EXPECT_EQ(index.remove_object(static_cast<ObjectIndex>(2)), 3U);
  EXPECT_EQ(index.remove_object(static_cast<ObjectIndex>(3)), 0U);
  EXPECT_EQ(index.rate_count(), 1U);
  EXPECT_TRUE(index.remove(segment_key(1, 1)));
  EXPECT_FALSE(index.remove(segment_key(1, 1)));
  EXPECT_FALSE(index.find(segment_key(1, 1)));
  EXPECT_EQ(index.find(segment_key(1, 2))->level, 1);
  (void)index.set(segment_key(1, 2), FadingScore{}, 0);
  EXPECT_EQ(index.size(), 1U) << "a cold one is not kept";
  (void)index.set(segment_key(9, 9), FadingScore{}, 0);
  EXPECT_EQ(index.size(), 1U);
}

// The same by sorting everything at each time.
class SortedScores {
 public:
  explicit SortedScores(std::size_t kept_max) : kept_max_(kept_max) {}

  std::optional<SegmentKey> set(SegmentKey key, const FadingScore& score, double time) {
    scores_[key] = score;
    if (scores_.size() <= kept_max_) return std::nullopt;
    const SegmentKey coldest = ranked(time).back().key;
    scores_.erase(coldest);
    return coldest;
  }
  bool remove(SegmentKey key) { return scores_.erase(key) > 0; }
  // The hottest first.
  std::vector<RankedSegment> ranked(double time) const {
    std::vector<RankedSegment> all;
    for (const auto& [key, score] : scores_) all.push_back({key, score.logarithm_at(time)});
    std::ranges::sort(all, [](const RankedSegment& one, const RankedSegment& other) {
      return std::pair(other.logarithm, other.key) < std::pair(one.logarithm, one.key);
    });
    return all;
  }

 private:
  const std::size_t kept_max_;
  std::map<SegmentKey, FadingScore> scores_;
};

TEST(HeatIndex, AgreesWithASortedVector) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::size_t kept_max = 1 + random() % 60;
    HeatIndex index(kept_max);
    SortedScores sorted(kept_max);
    const unsigned rates = 1 + static_cast<unsigned>(random() % 12);
    double time = 0;
    for (int turn = 0; turn < 600; ++turn) {
      time += static_cast<double>(random() % 4);
      const SegmentKey key = segment_key(1 + static_cast<std::uint32_t>(random() % 5),
                                         static_cast<std::uint32_t>(random() % 20));
      if (random() % 5 == 0) {
        ASSERT_EQ(index.remove(key), sorted.remove(key));
        continue;
      }
      // Few different values, so that some are equal. As new lines begin at the present time.
      const double rate = std::log(2.0) / static_cast<double>(1 + random() % rates);
      const double now = static_cast<double>(random() % 8);
      const FadingScore score{now + rate * time, rate};
      ASSERT_EQ(index.set(key, score, time), sorted.set(key, score, time)) << "turn " << turn;
      const auto expected = sorted.ranked(time);
      const std::size_t count = random() % 70;
      const std::size_t found = std::min(count, expected.size());
      ASSERT_EQ(index.hottest(count, time),
                std::vector<RankedSegment>(expected.begin(),
                                           expected.begin() + static_cast<std::ptrdiff_t>(found)));
      ASSERT_EQ(index.coldest(count, time),
                std::vector<RankedSegment>(expected.rbegin(),
                                           expected.rbegin() + static_cast<std::ptrdiff_t>(found)));
      ASSERT_EQ(index.size(), expected.size());
      ASSERT_LE(index.rate_count(), rates);
    }
  }
}

// From scores themselves: a file that is read again and again against the sum of the equation.
TEST(HeatIndex, RanksAsTheScoresThemselvesDo) {
  std::mt19937_64 random(11);
  std::vector<HeatScore> scores(40);
  HeatIndex index(100);
  for (int at = 0; at < 2000; ++at) {
    const auto segment = static_cast<std::uint32_t>(random() % (1 + random() % scores.size()));
    scores[segment].add(0.05 * at);
    (void)index.set(segment_key(1, segment), scores[segment].fading(), 0.05 * at);
    const double later = 0.05 * at + static_cast<double>(random() % 30);
    double highest = -std::numeric_limits<double>::infinity();
    for (const HeatScore& score : scores) highest = std::max(highest, score.logarithm_at(later));
    ASSERT_NEAR(index.hottest(1, later).front().logarithm, highest, 1e-9) << at;
  }
}

}  // namespace
}  // namespace cairn
