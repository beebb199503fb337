// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/end_bound.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace cairn::node {
namespace {

using std::chrono::seconds;

TEST(EndBoundDeathTest, EndsAProcessThatDoesNotEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const EndBound bound(seconds(0), 74);
        std::this_thread::sleep_for(seconds(60));
      },
      ::testing::ExitedWithCode(74), "");
}

TEST(EndBound, LeavesAloneWhoIsInTime) {
  const auto began = std::chrono::steady_clock::now();
  {
    const EndBound bound(seconds(600), 74);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(60));
}

}  // namespace
}  // namespace cairn::node
