// SPDX-License-Identifier: Apache-2.0
// When a node measures its tiers, and what it does with what it finds.
#include "service/capacity/idle_profiler.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

using profiler::DeviceProfile;

DeviceProfile profile_of(double bandwidth) {
  DeviceProfile profile;
  profile.identity.host = "here";
  profile.identity.name = "a device";
  profile.identity.size_bytes = static_cast<std::uint64_t>(bandwidth);
  profile.measured_at = 1'000'000'000;
  profile.figures.read_bandwidth.value = profile.figures.write_bandwidth.value = bandwidth;
  profile.figures.read_latency.value = profile.figures.write_latency.value = 1e-4;
  return profile;
}

class IdleProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(16 * kBlockBytes));
    config_.profile_idle_ms = 5;
    placement_.emplace(memory_, std::vector<profiler::TierFigures>(1), nullptr);
    file_ = "/tmp/cairn-idle-profiler-test-" + std::to_string(::getpid()) + ".json";
  }
  void TearDown() override {
    profiler_.reset();  // its thread writes to what is destroyed before it
    std::remove(file_.c_str());
    std::remove((file_ + ".lock").c_str());
  }
  void measure_with(IdleProfiler::Measure measure) {
    profiler_.emplace(
        memory_, config_, *placement_,
        [this](const std::string& text) {
          const std::lock_guard lock(mutex_);
          log_ += text;
        },
        IdleProfiler::Profiling{std::move(measure), profiler::ProfileStore(file_)});
    profiler_->start();
  }
  bool wait_for(const std::function<bool()>& condition) {
    for (int look = 0; look < 5000 && !condition(); ++look) ::usleep(1000);
    return condition();
  }
  std::string log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  NodeMemory memory_;
  NodeConfig config_;
  std::optional<PlacementEngine> placement_;
  std::optional<IdleProfiler> profiler_;
  std::string file_;
  std::mutex mutex_;
  std::string log_;
};

TEST_F(IdleProfilerTest, PlacesByWhatItFoundAndKeepsIt) {
  measure_with([](const std::string& directory, const std::atomic<bool>&) {
    EXPECT_EQ(directory, "") << "the memory";
    return Result<std::vector<DeviceProfile>>(std::vector{profile_of(3e9), profile_of(2e9)});
  });
  EXPECT_TRUE(wait_for([&] { return placement_->figures_of(0).measured; }));
  profiler_->stop();
  EXPECT_EQ(placement_->figures_of(0).write_bandwidth, 2e9) << "the slowest node";
  EXPECT_EQ(placement_->views()[0].bandwidth, 2e9);
  std::ifstream kept(file_);
  const std::string text((std::istreambuf_iterator<char>(kept)), std::istreambuf_iterator<char>());
  EXPECT_NE(text.find("a device"), std::string::npos);
}

TEST_F(IdleProfilerTest, GivesWayToProgramsAndTriesAgain) {
  std::atomic<int> begun{0};
  measure_with([&](const std::string&, const std::atomic<bool>& cancelled) {
    if (begun.fetch_add(1) > 0) {
      return Result<std::vector<DeviceProfile>>(std::vector{profile_of(1e9)});
    }
    while (!cancelled) ::usleep(1000);
    return Result<std::vector<DeviceProfile>>(Status(StatusCode::kRetry, "stopped"));
  });
  ASSERT_TRUE(wait_for([&] { return begun.load() == 1; }));
  EXPECT_FALSE(placement_->figures_of(0).measured);
  memory_.slot(1).shards[0].add(Counter::kWrites, 1);
  EXPECT_TRUE(wait_for([&] { return placement_->figures_of(0).measured; }));
}

TEST_F(IdleProfilerTest, WaitsUntilEverythingIsStored) {
  std::atomic<int> begun{0};
  memory_.flusher_board().dirty_bytes.store(kPageBytes);
  measure_with([&](const std::string&, const std::atomic<bool>&) {
    ++begun;
    return Result<std::vector<DeviceProfile>>(std::vector{profile_of(1e9)});
  });
  ::usleep(50'000);
  EXPECT_EQ(begun.load(), 0);
  memory_.flusher_board().dirty_bytes.store(0);
  EXPECT_TRUE(wait_for([&] { return begun.load() == 1; }));
}

TEST_F(IdleProfilerTest, SaysOnceWhyATierKeepsTheFiguresOfItsClass) {
  std::atomic<int> begun{0};
  measure_with([&](const std::string&, const std::atomic<bool>&) {
    ++begun;
    return Result<std::vector<DeviceProfile>>(Status(StatusCode::kExhausted, "/place: no room"));
  });
  EXPECT_TRUE(wait_for([&] { return !log().empty(); }));
  profiler_->stop();
  EXPECT_EQ(begun.load(), 1);
  EXPECT_NE(log().find("/place: no room"), std::string::npos);
  EXPECT_FALSE(placement_->figures_of(0).measured);
}

TEST_F(IdleProfilerTest, HasNothingToDoWhereItIsTurnedOff) {
  config_.profile_idle_ms = 0;
  measure_with([](const std::string&, const std::atomic<bool>&) {
    ADD_FAILURE();
    return Result<std::vector<DeviceProfile>>(std::vector<DeviceProfile>{});
  });
  ::usleep(30'000);
}

}  // namespace
}  // namespace cairn::node
