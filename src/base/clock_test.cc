// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Clock, WhatIsStampedAfterTheLookIsJustNow) {
  EXPECT_EQ(elapsed_ms(1000, 400), 600U);
  EXPECT_EQ(elapsed_ms(1000, 1000), 0U);
  EXPECT_EQ(elapsed_ms(1000, 1004), 0U) << "another thread was a tick later";
  EXPECT_EQ(elapsed_ms(UINT32_MAX, 3), 0U) << "the clock has wrapped meanwhile";
  EXPECT_EQ(elapsed_ms(5, UINT32_MAX - 4), 10U) << "the clock has wrapped since";
  EXPECT_EQ(elapsed_ms(3'000'000'000, 0), 3'000'000'000U) << "34 days";
}

}  // namespace
}  // namespace cairn
