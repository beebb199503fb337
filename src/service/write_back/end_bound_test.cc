// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/end_bound.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/testing/without_threads.h"
#include "service/keeping/keeper.h"

namespace cairn::node {
namespace {

using std::chrono::seconds;

// Its keeper must not take that for a death.
TEST(EndBoundDeathTest, EndsAProcessThatDoesNotEndAsOneThatIsDone) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const KeeperLimits limits;
        const auto serve = [](Succession& succession) {
          const EndBound bound(seconds(0), 74, *succession.life);
          std::this_thread::sleep_for(seconds(60));
          return 0;
        };
        ::_exit(keep_service(limits, {serve, {}}));
      },
      ::testing::ExitedWithCode(74), "");
}

TEST(EndBound, LeavesAloneWhoIsInTime) {
  const auto began = std::chrono::steady_clock::now();
  {
    KeptLife life{};
    const EndBound bound(seconds(600), 74, life);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(60));
}

TEST(EndBound, IsNoneWhereThereIsNoThread) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another account";
  const int status = cairn::testing::run_without_threads([] {
    KeptLife life{};
    const EndBound bound(seconds(0), 74, life);
    return 7;
  });
  EXPECT_EQ(status, 7);
}

}  // namespace
}  // namespace cairn::node
