// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/sample_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace cairn::node {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// As the sampler does: looks every second for `seconds`. The number counts the seconds.
void run_for(SampleRing* ring, std::int64_t seconds) {
  for (std::int64_t second = 1; second <= seconds; ++second) {
    const std::array<std::uint64_t, 1> row = {static_cast<std::uint64_t>(second)};
    if (ring->is_due(second * kSecond)) ring->add(second * kSecond, row);
  }
}

TEST(SampleRing, AWeekNeedsNoMoreRowsThanAnHour) {
  SampleRing ring(1, kSecond);
  run_for(&ring, 7 * 24 * 3600);
  EXPECT_LE(ring.size(), SampleRing::kRowsMax);
  EXPECT_GE(ring.size(), SampleRing::kRowsMax / 2 - 1);
  EXPECT_EQ(ring.interval_ns(), 2048 * kSecond);
}

TEST(SampleRing, TheIntervalDoublesWhenThereIsNoRoom) {
  SampleRing ring(1, kSecond, 8);
  run_for(&ring, 8);
  EXPECT_EQ(ring.interval_ns(), kSecond);
  EXPECT_EQ(ring.size(), 8U);
  const std::array<std::uint64_t, 1> row = {9};
  ring.add(9 * kSecond, row);
  EXPECT_EQ(ring.interval_ns(), 2 * kSecond);
  EXPECT_EQ(ring.size(), 5U);
  EXPECT_FALSE(ring.is_due(10 * kSecond));
  EXPECT_TRUE(ring.is_due(11 * kSecond));
}

TEST(SampleRing, RowsKeepTheirNumbersAndTheFirstStays) {
  SampleRing ring(1, kSecond, 8);
  run_for(&ring, 100);
  EXPECT_EQ(ring.time(0), kSecond);
  for (std::size_t row = 0; row < ring.size(); ++row) {
    EXPECT_EQ(ring.value(row, 0) * kSecond, static_cast<std::uint64_t>(ring.time(row)));
    if (row == 0) continue;
    EXPECT_GE(ring.time(row) - ring.time(row - 1), ring.interval_ns() / 2);
  }
}

}  // namespace
}  // namespace cairn::node
