// SPDX-License-Identifier: Apache-2.0
#include "service/training/experiment_bench.h"

#include <gtest/gtest.h>

#include "base/testing/temporary_folder.h"

namespace cairn::training {
namespace {

TEST(ExperimentBenchTest, RunsAllRequestsOfBothKinds) {
  const ::cairn::testing::TemporaryFolder folder("training");
  const std::atomic<bool> cancelled{false};
  auto bench = DeviceBench::create(folder.path(), 1 << 20, cancelled);
  ASSERT_TRUE(bench) << bench.status().message();
  constexpr std::int64_t kTimeMaxNs = 10'000'000'000;
  for (const AccessKind access : {AccessKind::kRead, AccessKind::kWrite}) {
    const auto time = bench.value()->run({access, 8, 4096, 100, 1 << 19, 0}, kTimeMaxNs);
    ASSERT_TRUE(time) << time.status().message();
    EXPECT_EQ(time->requests, 100U);
    EXPECT_GT(time->seconds, 0);
  }
}

TEST(ExperimentBenchTest, IsStopped) {
  const ::cairn::testing::TemporaryFolder folder("training");
  const std::atomic<bool> cancelled{true};
  EXPECT_EQ(DeviceBench::create(folder.path(), 1 << 20, cancelled).status().code(),
            StatusCode::kRetry);
}

}  // namespace
}  // namespace cairn::training
