// SPDX-License-Identifier: Apache-2.0
//
// Both engines do the same.
#include "service/profiler/request_engine.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

namespace cairn::profiler {
namespace {

constexpr uint32_t kRequestBytes = 4096;
constexpr int64_t kLongNs = 60'000'000'000;

class RequestEngineTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    engine_ = GetParam() ? make_uring_engine() : make_thread_engine();
    if (engine_ == nullptr) GTEST_SKIP() << "no io_uring here";
    descriptor_ = ::memfd_create("requests", MFD_CLOEXEC);
    ASSERT_GE(descriptor_, 0);
    memory_.resize(8 * kRequestBytes, std::byte{7});
  }
  void TearDown() override { ::close(descriptor_); }

  RequestRun run(Direction direction, unsigned depth, uint64_t places) {
    RequestRun run;
    run.pattern = {.direction = direction,
                   .request_bytes = kRequestBytes,
                   .depth = depth,
                   .sequential = true,
                   .region_bytes = places * kRequestBytes};
    run.descriptor = descriptor_;
    run.memory = memory_.data();
    run.budget_ns = kLongNs;
    return run;
  }

  std::unique_ptr<RequestEngine> engine_;
  int descriptor_ = -1;
  std::vector<std::byte> memory_;
};

TEST_P(RequestEngineTest, WritesEveryPlaceOnce) {
  RequestRun write = run(Direction::kWrite, 8, 100);
  write.requests_max = 100;
  const RequestTimes times = engine_->run(write);
  EXPECT_EQ(times.error_number, 0);
  EXPECT_EQ(times.completed_ns.size(), 100U);
  EXPECT_TRUE(std::is_sorted(times.completed_ns.begin(), times.completed_ns.end()));
  EXPECT_EQ(::lseek(descriptor_, 0, SEEK_END), 100 * kRequestBytes);
  std::byte last{};
  ASSERT_EQ(::pread(descriptor_, &last, 1, 100 * kRequestBytes - 1), 1);
  EXPECT_EQ(last, std::byte{7});
}

TEST_P(RequestEngineTest, ReadsWhatTheFileHolds) {
  RequestRun write = run(Direction::kWrite, 1, 4);
  write.requests_max = 4;
  engine_->run(write);
  std::fill(memory_.begin(), memory_.end(), std::byte{0});
  RequestRun read = run(Direction::kRead, 1, 4);
  read.requests_max = 4;
  EXPECT_EQ(engine_->run(read).error_number, 0);
  EXPECT_TRUE(std::all_of(memory_.begin(), memory_.begin() + kRequestBytes,
                          [](std::byte byte) { return byte == std::byte{7}; }));
}

TEST_P(RequestEngineTest, EndsWhenTheTimeIsOver) {
  RequestRun write = run(Direction::kWrite, 2, 4);
  write.budget_ns = 20'000'000;
  const RequestTimes times = engine_->run(write);
  ASSERT_FALSE(times.completed_ns.empty());
  EXPECT_GE(times.completed_ns.back(), write.budget_ns / 2);
}

TEST_P(RequestEngineTest, EndsWhenItIsCancelled) {
  std::atomic<bool> cancelled{true};
  RequestRun write = run(Direction::kWrite, 8, 4);
  write.cancelled = &cancelled;
  EXPECT_TRUE(engine_->run(write).completed_ns.empty());
}

TEST_P(RequestEngineTest, ReportsFailures) {
  RequestRun read = run(Direction::kRead, 8, 100);
  EXPECT_EQ(engine_->run(read).error_number, EIO) << "reading past the end is a short transfer";
  read.descriptor = -1;
  EXPECT_EQ(engine_->run(read).error_number, EBADF);
  // And works on afterwards.
  RequestRun write = run(Direction::kWrite, 8, 10);
  write.requests_max = 10;
  EXPECT_EQ(engine_->run(write).completed_ns.size(), 10U);
}

INSTANTIATE_TEST_SUITE_P(Engines, RequestEngineTest, testing::Bool(), [](const auto& value) {
  return std::string(value.param ? "uring" : "threads");
});

TEST(RequestOffset, ComesToEveryPlaceOnceAndJumps) {
  for (const uint64_t places : {1U, 2U, 3U, 16U, 61U, 4096U}) {
    const RequestPattern pattern = {.request_bytes = kRequestBytes,
                                    .sequential = false,
                                    .region_bytes = places * kRequestBytes};
    std::set<uint64_t> offsets;
    for (uint64_t index = 0; index < places; ++index) {
      offsets.insert(request_offset(pattern, index));
    }
    EXPECT_EQ(offsets.size(), places);
    EXPECT_EQ(*offsets.rbegin(), (places - 1) * kRequestBytes);
    if (places < 16) continue;
    EXPECT_GT(request_offset(pattern, 1), places * kRequestBytes / 3);
  }
}

}  // namespace
}  // namespace cairn::profiler
