// SPDX-License-Identifier: Apache-2.0
//
// Small measurements of real places. How exact they are is bench/suites/profile.py's to say, on
// devices whose rates are known.
#include "service/profiler/device_measure.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/clock.h"
#include "service/profiler/directory_state.h"
#include "service/profiler/memory_measure.h"
#include "service/profiler/test_file.h"
#include "service/profiler/testing/fake_machine.h"

namespace cairn::profiler {
namespace {

using ::testing::HasSubstr;

class DeviceMeasureTest : public testing::Test {
 protected:
  void SetUp() override {
    if (read_directory_state(place_).in_memory) GTEST_SKIP() << place_ << " is in memory";
  }
  MeasureOptions quick() const { return {.seconds = 0.4, .space_bytes = kMeasureSpaceMin}; }

  FakeMachine machine_;
  std::string place_ = machine_.directory("place");
};

void expect_plausible(const Spread& spread) {
  EXPECT_GT(spread.minimum, 0);
  EXPECT_LE(spread.minimum, spread.median);
  EXPECT_LE(spread.median, spread.maximum);
  EXPECT_LE(spread.minimum, spread.value * 1.0001);
  EXPECT_GE(spread.maximum, spread.value * 0.9999);
}

TEST_F(DeviceMeasureTest, MeasuresEverySizeAndDepthAndLeavesNothing) {
  const auto figures = measure_device(place_, quick());
  ASSERT_TRUE(figures.is_ok()) << figures.status().message();
  expect_plausible(figures.value().read_bandwidth);
  expect_plausible(figures.value().write_bandwidth);
  expect_plausible(figures.value().read_latency);
  expect_plausible(figures.value().write_latency);
  std::set<std::tuple<Direction, uint32_t, unsigned>> seen;
  for (const CellFigures& cell : figures.value().cells) {
    expect_plausible(cell.bandwidth);
    expect_plausible(cell.latency);
    EXPECT_GT(cell.requests, 0U);
    EXPECT_NEAR(cell.bandwidth.value * cell.latency.value,
                static_cast<double>(cell.request_bytes) * cell.depth, 1)
        << "Little's law";
    seen.insert({cell.direction, cell.request_bytes, cell.depth});
  }
  EXPECT_EQ(seen.size(), 12U) << "two directions, three sizes, two depths";
  EXPECT_TRUE(std::filesystem::is_empty(place_));
}

TEST_F(DeviceMeasureTest, WorksWithoutIoUring) {
  MeasureOptions options = quick();
  options.allow_io_uring = false;
  const auto figures = measure_device(place_, options);
  ASSERT_TRUE(figures.is_ok()) << figures.status().message();
  expect_plausible(figures.value().read_bandwidth);
}

TEST_F(DeviceMeasureTest, TellsItsProgress) {
  std::vector<std::string> phases;
  double last = -1;
  MeasureOptions options = quick();
  options.progress = [&](std::string_view phase, double share) {
    phases.emplace_back(phase);
    EXPECT_GT(share, last);
    EXPECT_LT(share, 1);
    last = share;
  };
  ASSERT_TRUE(measure_device(place_, options).is_ok());
  EXPECT_EQ(phases.size(), 14U);
  EXPECT_EQ(phases[2], "reading 1 MiB x 8");
}

TEST_F(DeviceMeasureTest, EndsWhenItIsCancelled) {
  std::atomic<bool> cancelled{false};
  MeasureOptions options = quick();
  options.seconds = 60;
  options.cancelled = &cancelled;
  options.progress = [&](std::string_view, double share) { cancelled = share > 0; };
  const int64_t start_ns = monotonic_ns();
  const auto figures = measure_device(place_, options);
  EXPECT_EQ(figures.status().code(), StatusCode::kRetry);
  EXPECT_LT(monotonic_ns() - start_ns, 30 * kNanosPerSecond);
  EXPECT_TRUE(std::filesystem::is_empty(place_));
}

TEST_F(DeviceMeasureTest, PlacesThatCannotBeMeasuredAreNamed) {
  EXPECT_EQ(measure_device("/no/such/place", quick()).status().code(), StatusCode::kNotFound);
  const std::string file = machine_.directory("") + "file";
  machine_.write("/file", "text");
  const auto no_directory = measure_device(file, quick()).status();
  EXPECT_THAT(no_directory.message(), HasSubstr(file + ": is not a directory"));
  if (read_directory_state("/dev/shm").in_memory) {
    EXPECT_THAT(measure_device("/dev/shm", quick()).status().message(),
                HasSubstr("/dev/shm: is in memory"));
  }
  EXPECT_THAT(measure_device("/proc", quick()).status().message(), HasSubstr("/proc: "));
}

TEST_F(DeviceMeasureTest, ImpossibleOptionsAreRefused) {
  for (const double seconds : {0.0, -1.0, 1e9, static_cast<double>(NAN)}) {
    MeasureOptions options = quick();
    options.seconds = seconds;
    EXPECT_EQ(measure_device(place_, options).status().code(), StatusCode::kInvalid) << seconds;
  }
  MeasureOptions options = quick();
  options.space_bytes = 4096;
  EXPECT_EQ(measure_device(place_, options).status().code(), StatusCode::kInvalid);
}

TEST_F(DeviceMeasureTest, TheTestFileHasNoNameAndTakesRealSpace) {
  auto file = TestFile::create(place_, kMeasureSpaceMin);
  ASSERT_TRUE(file.is_ok()) << file.status().message();
  EXPECT_TRUE(std::filesystem::is_empty(place_));
  EXPECT_EQ(::lseek(file.value().descriptor(), 0, SEEK_END), kMeasureSpaceMin);
  // Without direct I/O it is another description of the same file, each write of which is stored.
  ASSERT_TRUE(file.value().give_up_direct().is_ok());
  EXPECT_EQ(::lseek(file.value().descriptor(), 0, SEEK_END), kMeasureSpaceMin);
  EXPECT_NE(::fcntl(file.value().descriptor(), F_GETFL) & O_DSYNC, 0);
  EXPECT_EQ(::fcntl(file.value().descriptor(), F_GETFL) & O_DIRECT, 0);
}

TEST_F(DeviceMeasureTest, TooLargeATestFileIsNoRoom) {
  struct statvfs space{};
  ASSERT_EQ(::statvfs(place_.c_str(), &space), 0);
  const uint64_t more = uint64_t{space.f_blocks} * space.f_frsize + (uint64_t{1} << 30);
  // And it is not tried either: meanwhile everybody else would find the disk full.
  std::atomic<bool> done{false};
  auto least = space.f_bavail;
  std::thread watch([&] {
    struct statvfs now{};
    while (!done && ::statvfs(place_.c_str(), &now) == 0) least = std::min(least, now.f_bavail);
  });
  EXPECT_EQ(TestFile::create(place_, more).status().code(), StatusCode::kExhausted);
  done = true;
  watch.join();
  EXPECT_GT(least, space.f_bavail / 2);
}

TEST(MemoryMeasure, CopiesAndLatencies) {
  const MemoryNode node = {.id = 0, .total_bytes = uint64_t{1} << 30};
  const auto figures =
      measure_memory(node, {.seconds = 0.2, .region_bytes = uint64_t{32} << 20, .bind = true});
  ASSERT_TRUE(figures.is_ok()) << figures.status().message();
  expect_plausible(figures.value().read_bandwidth);
  expect_plausible(figures.value().write_bandwidth);
  expect_plausible(figures.value().read_latency);
  EXPECT_EQ(figures.value().cells.size(), 6U);
  EXPECT_GT(figures.value().read_bandwidth.value, 1e8);
  EXPECT_LT(figures.value().read_latency.value, 1e-5) << "no page fault in the chain";
  EXPECT_GT(figures.value().read_latency.value, 5e-10) << "not out of the first cache";
}

TEST(MemoryMeasure, EndsWhenItIsCancelled) {
  const std::atomic<bool> cancelled{true};
  const auto figures = measure_memory(
      {}, {.seconds = 60, .region_bytes = uint64_t{8} << 20, .cancelled = &cancelled});
  EXPECT_EQ(figures.status().code(), StatusCode::kRetry);
}

}  // namespace
}  // namespace cairn::profiler
