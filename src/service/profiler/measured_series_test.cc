// SPDX-License-Identifier: Apache-2.0
#include "service/profiler/measured_series.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cairn::profiler {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

// Requests that take `each_ns` one after the other.
std::vector<int64_t> even_series(int64_t each_ns, int64_t end_ns) {
  std::vector<int64_t> series;
  for (int64_t now = each_ns; now <= end_ns; now += each_ns) series.push_back(now);
  return series;
}

// A token bucket: each slice is worth `per_slice` requests, which are served at once, `each_ns`
// apart. The first slice begins `phase_ns` before the series and, `credit`, is served in full.
std::vector<int64_t> bucket_series(double per_slice, int64_t slice_ns, int64_t each_ns,
                                   int64_t phase_ns, int64_t end_ns, bool credit) {
  std::vector<int64_t> series;
  double granted = 0;
  double used = 0;
  for (int64_t slice = 0; slice * slice_ns - phase_ns < end_ns; ++slice) {
    granted += per_slice;
    const int64_t start = slice * slice_ns - phase_ns;
    if (start < 0 && !credit) {
      used = granted;
      continue;
    }
    int64_t now = std::max<int64_t>(start, 0);
    while (used + 1 <= granted) {
      now += each_ns;
      series.push_back(now);
      used += 1;
    }
  }
  return series;
}

TEST(RateOfSeries, OfAnEvenDeviceIsItsRateWithoutSpread) {
  const SeriesRate rate = rate_of_series(even_series(2 * kMillisecond, 1000 * kMillisecond), 0);
  EXPECT_FALSE(rate.paused);
  EXPECT_NEAR(rate.per_second.value, 500, 1e-6);
  EXPECT_NEAR(rate.per_second.minimum, 500, 1e-6);
  EXPECT_NEAR(rate.per_second.maximum, 500, 1e-6);
  EXPECT_EQ(rate.requests, 499U);
  EXPECT_NEAR(rate.seconds, 0.998, 1e-9);
}

TEST(RateOfSeries, OfATokenBucketIsExactWhateverThePhase) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int repetition = 0; repetition < 500; ++repetition) {
    const double per_slice = std::uniform_real_distribution<>(4, 60)(random);
    const int64_t phase = std::uniform_int_distribution<int64_t>(0, 99)(random) * kMillisecond;
    const int64_t end = std::uniform_int_distribution<int64_t>(350, 1500)(random) * kMillisecond;
    const auto series =
        bucket_series(per_slice, 100 * kMillisecond, 90'000, phase, end, repetition % 2 == 0);
    const SeriesRate rate = rate_of_series(series, 0);
    EXPECT_TRUE(rate.paused);
    // A bucket gives whole requests, which over few slices is all that the error can be.
    const double slices = std::max(1.0, rate.seconds / 0.1);
    EXPECT_NEAR(rate.per_second.value, per_slice * 10, 10.0 / slices + 0.02 * per_slice)
        << "per slice " << per_slice << ", phase " << phase << ", end " << end;
  }
}

TEST(RateOfSeries, FromEndToEndWouldTakeTheCreditForTheDevicesRate) {
  // 240 requests a second in slices of 24, a quarter of a second: 72 of them came, worth 288.
  const auto series = bucket_series(24, 100 * kMillisecond, 90'000, 0, 250 * kMillisecond, true);
  ASSERT_EQ(series.size(), 72U);
  EXPECT_NEAR(rate_of_series(series, 0).per_second.value, 240, 0.5);
}

TEST(RateOfSeries, StallsOfAnEvenDeviceCount) {
  auto series = even_series(kMillisecond, 1000 * kMillisecond);
  for (size_t index = 500; index < series.size(); ++index) series[index] += 50 * kMillisecond;
  for (size_t index = 510; index < series.size(); ++index) series[index] += 50 * kMillisecond;
  const SeriesRate rate = rate_of_series(series, 0);
  EXPECT_FALSE(rate.paused);
  EXPECT_NEAR(rate.per_second.value, 1000 / 1.1, 2);
  EXPECT_NEAR(rate.per_second.maximum, 1000, 2);
  EXPECT_LT(rate.per_second.minimum, 600);
}

TEST(RateOfSeries, LeavesTheStartOut) {
  // Ten times as fast for the first tenth.
  std::vector<int64_t> series = even_series(kMillisecond / 10, 100 * kMillisecond);
  for (int64_t now = 101; now <= 1000; ++now) series.push_back(now * kMillisecond);
  EXPECT_GT(rate_of_series(series, 0).per_second.value, 1500);
  EXPECT_NEAR(rate_of_series(series, 100 * kMillisecond).per_second.value, 1000, 2);
}

TEST(RateOfSeries, OfFewRequests) {
  EXPECT_EQ(rate_of_series({}, 0).per_second.value, 0);
  const std::vector<int64_t> one = {500 * kMillisecond};
  EXPECT_NEAR(rate_of_series(one, 0).per_second.value, 2, 1e-9);
  // What lies before the skipped time is all there is.
  const std::vector<int64_t> four = {100 * kMillisecond, 200 * kMillisecond, 300 * kMillisecond,
                                     400 * kMillisecond};
  EXPECT_NEAR(rate_of_series(four, 350 * kMillisecond).per_second.value, 10, 1e-9);
  const std::vector<int64_t> at_once = {7, 7, 7, 7, 7};
  EXPECT_GT(rate_of_series(at_once, 0).per_second.value, 0);
}

TEST(Spread, OfValues) {
  const std::vector<double> values = {5, 1, 3, 11};
  const Spread spread = spread_of(values);
  EXPECT_EQ(spread.minimum, 1);
  EXPECT_EQ(spread.median, 4);
  EXPECT_EQ(spread.value, 4);
  EXPECT_EQ(spread.maximum, 11);
  EXPECT_EQ(spread.relative(), 10.0 / 2 / 4);
  EXPECT_EQ(spread_of({}).value, 0);
  EXPECT_EQ(spread_of({}).relative(), 0);
}

TEST(Spread, InvertedSwapsTheExtremes) {
  const Spread latency = Spread{200, 100, 250, 400}.inverted(8);
  EXPECT_EQ(latency.value, 0.04);
  EXPECT_EQ(latency.minimum, 0.02);
  EXPECT_EQ(latency.median, 0.032);
  EXPECT_EQ(latency.maximum, 0.08);
}

}  // namespace
}  // namespace cairn::profiler
