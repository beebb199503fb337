// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/bell.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "memory/arena/event_board.h"

namespace cairn {
namespace {

constexpr int kLongMs = 20'000;
constexpr std::int64_t kNotLongNanos = 10'000'000'000;

const auto kNoWork = [] { return false; };

TEST(Bell, ARingEndsTheSleepUnderWay) {
  Bell bell{};
  const std::uint32_t heard = bell.listen();
  const std::int64_t began = monotonic_ns();
  std::thread sleeper([&] { bell.sleep(heard, kLongMs, kNoWork); });
  while (bell.listen() == heard) bell.ring();
  sleeper.join();
  EXPECT_LT(monotonic_ns() - began, kNotLongNanos);
}

TEST(Bell, NoRingIsLostBetweenTheLookForWorkAndTheSleep) {
  Bell bell{};
  const std::uint32_t heard = bell.listen();
  const std::int64_t began = monotonic_ns();
  bell.sleep(heard, kLongMs, [&] {
    bell.ring();  // another thread's, just now
    return false;
  });
  EXPECT_NE(bell.listen(), heard);
  bell.sleep(bell.listen() - 1, kLongMs, kNoWork);
  EXPECT_LT(monotonic_ns() - began, kNotLongNanos);
}

TEST(Bell, WorkIsNotSleptThrough) {
  Bell bell{};
  const std::int64_t began = monotonic_ns();
  bell.sleep(bell.listen(), kLongMs, [] { return true; });
  EXPECT_LT(monotonic_ns() - began, kNotLongNanos);
}

TEST(Bell, ARingIsForSleepersAloneAndManyAreOne) {
  Bell bell{};
  const std::uint32_t heard = bell.listen();
  bell.ring();
  bell.ring_once();
  EXPECT_EQ(bell.listen(), heard) << "nobody sleeps";
  bell.announce();
  bell.ring_once();
  bell.ring_once();
  EXPECT_EQ(bell.listen(), heard + 1) << "the first one is enough";
  bell.announce();
  bell.ring();
  bell.ring_anyway();
  bell.retire();
  bell.ring();
  EXPECT_EQ(bell.listen(), heard + 3);
}

TEST(EventBoard, EachLevelIncludesThoseBeforeIt) {
  EventBoard board{};
  EXPECT_FALSE(board.wants(EventLevel::kReads));
  board.wanted.store(EventLevel::kReads);
  EXPECT_TRUE(board.wants(EventLevel::kReads));
  EXPECT_FALSE(board.wants(EventLevel::kWrites));
  board.wanted.store(EventLevel::kWrites);
  EXPECT_TRUE(board.wants(EventLevel::kReads));
  EXPECT_TRUE(board.wants(EventLevel::kWrites));
}

}  // namespace
}  // namespace cairn
