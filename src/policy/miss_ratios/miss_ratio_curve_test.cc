// SPDX-License-Identifier: Apache-2.0
// Curves by hand, and the exact one against LRU caches of many capacities.
#include "policy/miss_ratios/miss_ratio_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "policy/miss_ratios/all_pages.h"
#include "policy/miss_ratios/testing/page_streams.h"
#include "policy/replacement/page_numbers.h"
#include "policy/replacement/recency_expert.h"

namespace cairn {
namespace {

using testing::loop_stream;
using testing::mixed_stream;
using testing::PageStream;
using testing::zipf_stream;

AllPages all_pages_of(const PageStream& stream) {
  AllPages pages;
  for (const std::uint64_t key : stream) pages.reference(key);
  return pages;
}

double lru_miss_ratio(const PageStream& stream, std::uint32_t capacity) {
  RecencyExpert cache(RecencyExpert::Order::kLru, capacity);
  PageNumbers numbers;
  std::size_t misses = 0;
  for (const std::uint64_t key : stream)
    misses += cache.reference(numbers.number_for(key, cache)) ? 0 : 1;
  return static_cast<double>(misses) / static_cast<double>(stream.size());
}

TEST(MissRatioCurve, OfNoReferencesIsZero) {
  const MissRatioCurve curve = AllPages().curve();
  EXPECT_TRUE(curve.is_empty());
  EXPECT_EQ(curve.at(0), 0);
  EXPECT_EQ(curve.at(UINT64_MAX), 0);
  EXPECT_EQ(curve.compulsory_ratio(), 0);
  EXPECT_TRUE(curve.is_monotone());
  EXPECT_FALSE(curve.knee().has_value());
  EXPECT_FALSE(curve.smallest_capacity_for(0.5).has_value());
  EXPECT_TRUE(curve.at_capacities(std::vector<std::uint64_t>{1, 2}).is_empty());
  EXPECT_EQ(AllPages().hot_set_pages(), 0);
}

TEST(MissRatioCurve, OfOnePage) {
  const AllPages pages = all_pages_of(PageStream(10, 42));
  const MissRatioCurve curve = pages.curve();
  EXPECT_EQ(curve.at(0), 1) << "a cache of no pages misses always";
  EXPECT_DOUBLE_EQ(curve.at(1), 0.1);
  EXPECT_DOUBLE_EQ(curve.at(1'000'000), 0.1);
  EXPECT_DOUBLE_EQ(curve.compulsory_ratio(), 0.1);
  EXPECT_EQ(curve.knee()->capacity, 1U);
  EXPECT_EQ(pages.hot_set_pages(), 1);
}

TEST(MissRatioCurve, OfPagesUsedOnceHasNoKnee) {
  const MissRatioCurve curve = all_pages_of(loop_stream(100, 100)).curve();
  EXPECT_EQ(curve.at(1000), 1);
  EXPECT_EQ(curve.compulsory_ratio(), 1);
  EXPECT_FALSE(curve.knee().has_value());
  EXPECT_FALSE(curve.smallest_capacity_for(0.99).has_value());
  EXPECT_EQ(curve.smallest_capacity_for(1), 0U);
}

TEST(MissRatioCurve, OfALoopFallsAtItsLength) {
  const MissRatioCurve curve = all_pages_of(loop_stream(100, 1000)).curve();
  EXPECT_EQ(curve.at(99), 1);
  EXPECT_DOUBLE_EQ(curve.at(100), 0.1);
  EXPECT_EQ(curve.knee()->capacity, 100U);
  EXPECT_DOUBLE_EQ(curve.knee()->miss_ratio, 0.1);
  EXPECT_EQ(curve.smallest_capacity_for(0.5), 100U);
}

TEST(MissRatioCurve, OfLruIsExactAtEveryCapacity) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    const PageStream stream =
        seed % 2 == 0 ? mixed_stream(300, 8000, seed) : zipf_stream(500, 0.7, 8000, seed);
    const AllPages pages = all_pages_of(stream);
    const MissRatioCurve curve = pages.curve();
    EXPECT_TRUE(curve.is_monotone());
    for (std::uint32_t capacity = 1; capacity < pages.pages() + 10; capacity += 1 + capacity / 12) {
      ASSERT_NEAR(curve.at(capacity), lru_miss_ratio(stream, capacity), 1e-12) << capacity;
    }
    EXPECT_DOUBLE_EQ(curve.at(pages.pages()), curve.compulsory_ratio());
    EXPECT_DOUBLE_EQ(curve.compulsory_ratio(), static_cast<double>(pages.pages()) / 8000);
  }
}

TEST(MissRatioCurve, HasStraightLinesBetweenItsPoints) {
  const MissRatioCurve curve({{0, 1}, {10, 0.5}, {30, 0.1}}, 0.05);
  EXPECT_DOUBLE_EQ(curve.at(5), 0.75);
  EXPECT_DOUBLE_EQ(curve.at(10), 0.5);
  EXPECT_DOUBLE_EQ(curve.at(20), 0.3);
  EXPECT_DOUBLE_EQ(curve.at(31), 0.1);
  EXPECT_DOUBLE_EQ(curve.compulsory_ratio(), 0.05);
  const MissRatioCurve thinned = curve.at_capacities(std::vector<std::uint64_t>{0, 20, 40});
  ASSERT_EQ(thinned.points().size(), 3U);
  EXPECT_DOUBLE_EQ(thinned.at(20), 0.3);
  EXPECT_DOUBLE_EQ(thinned.at(40), 0.1);
}

TEST(MissRatioCurve, FindsTheSmallestCapacityForATarget) {
  const MissRatioCurve curve({{0, 1}, {10, 0.5}, {30, 0.1}}, 0);
  EXPECT_EQ(curve.smallest_capacity_for(1), 0U);
  EXPECT_EQ(curve.smallest_capacity_for(0.75), 5U);
  EXPECT_EQ(curve.smallest_capacity_for(0.5), 10U);
  EXPECT_EQ(curve.smallest_capacity_for(0.1), 30U);
  EXPECT_FALSE(curve.smallest_capacity_for(0.09).has_value());
  for (double target = 0.1; target < 1; target += 0.013) {
    const std::uint64_t capacity = *curve.smallest_capacity_for(target);
    EXPECT_LE(curve.at(capacity), target + 1e-9);
    EXPECT_GT(curve.at(capacity - 1), target - 1e-9);
  }
}

// FIFO may miss more in a larger cache (Belady, Nelson, Shedler, CACM 12(6), 1969).
TEST(MissRatioCurve, NeedNotBeMonotone) {
  const MissRatioCurve curve({{0, 1}, {10, 0.2}, {20, 0.4}, {30, 0.1}}, 0);
  EXPECT_FALSE(curve.is_monotone());
  EXPECT_EQ(curve.smallest_capacity_for(0.2), 10U);
  EXPECT_EQ(curve.knee()->capacity, 10U);
}

TEST(MissRatioCurve, KneeIsWhereTheBendIs) {
  // Half of the gain with a tenth of the pages, the rest evenly.
  const MissRatioCurve curve({{0, 1}, {100, 0.5}, {500, 0.3}, {1000, 0.05}}, 0);
  const MissRatioCurve::Knee knee = *curve.knee();
  EXPECT_EQ(knee.capacity, 100U);
  EXPECT_DOUBLE_EQ(knee.miss_ratio, 0.5);
  EXPECT_NEAR(knee.height, 0.5 / 0.95 - 0.1, 1e-12);
}

TEST(MissRatioCurve, CapacitiesAreLogSpaced) {
  EXPECT_TRUE(log_spaced_capacities(0, 4).empty());
  EXPECT_EQ(log_spaced_capacities(1, 4), std::vector<std::uint64_t>{1});
  EXPECT_EQ(log_spaced_capacities(20, 1), (std::vector<std::uint64_t>{1, 2, 4, 8, 16, 20}));
  EXPECT_EQ(log_spaced_capacities(16, 1), (std::vector<std::uint64_t>{1, 2, 4, 8, 16}));
  const std::vector<std::uint64_t> many = log_spaced_capacities(1'000'000, 8);
  EXPECT_TRUE(std::is_sorted(many.begin(), many.end()));
  EXPECT_EQ(many.back(), 1'000'000U);
  EXPECT_LT(many.size(), 170U);
}

TEST(DistanceCounts, BucketsAreNarrow) {
  for (const std::uint64_t distance :
       {1ULL, 255ULL, 256ULL, 257ULL, 511ULL, 512ULL, 99'999ULL, (1ULL << 33) + 12345, ~0ULL}) {
    DistanceCounts counts(8);
    counts.add(distance, 1);
    const MissRatioCurve curve = counts.curve(1);
    const std::uint64_t known = std::min(distance, DistanceCounts::kDistanceMax);
    EXPECT_EQ(curve.at(known + known / 128), 0) << distance;
    EXPECT_EQ(curve.at(known - known / 128 - 1), 1) << distance;
  }
}

TEST(DistanceCounts, WhatIsNotAccountedForHits) {
  DistanceCounts counts(8);
  counts.add_cold(10);
  counts.add(50, 20);
  const MissRatioCurve curve = counts.curve(100);
  EXPECT_DOUBLE_EQ(curve.at(49), 0.3) << "seventy hit before";
  EXPECT_DOUBLE_EQ(curve.at(50), 0.1);
  EXPECT_DOUBLE_EQ(counts.curve(15).at(49), 1) << "a ratio, even if too many were counted";
}

TEST(HotSet, IsTheFewestPagesWithTheShare) {
  EXPECT_EQ(hot_set_pages({}, 1, 0, 0.9), 0);
  EXPECT_EQ(hot_set_pages({1, 90, 2, 3, 4}, 1, 100, 0.9), 1);
  EXPECT_EQ(hot_set_pages({1, 89, 2, 3, 5}, 1, 100, 0.9), 2);
  EXPECT_EQ(hot_set_pages({10, 10, 10}, 1, 30, 1), 3);
  const PageStream stream = mixed_stream(200, 20'000, 3);
  std::map<std::uint64_t, int> uses;
  for (const std::uint64_t key : stream) ++uses[key];
  std::vector<int> sorted;
  for (const auto& [key, count] : uses) sorted.push_back(count);
  std::sort(sorted.rbegin(), sorted.rend());
  std::size_t hot = 0;
  for (int sum = 0; sum < 18'000; ++hot) sum += sorted[hot];
  EXPECT_EQ(all_pages_of(stream).hot_set_pages(), static_cast<double>(hot));
}

}  // namespace
}  // namespace cairn
