// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/descriptor_room.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cairn {
namespace {

TEST(DescriptorRoom, IsNeverOverdrawn) {
  DescriptorRoom room{};
  room.give_back(100);
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int again = 0; again < 20'000; ++again) {
        if (!room.take(3, 10)) continue;
        const int now = taken.fetch_add(3) + 3;
        ASSERT_LE(now, 90);
        taken.fetch_sub(3);
        room.give_back(3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(room.left.load(), 100);
}

TEST(DescriptorRoom, AReservationIsGivenBackUnlessItWasSent) {
  DescriptorRoom room{};
  std::atomic<std::uint32_t> sending{0};
  room.give_back(1);
  {
    const DescriptorReservation failed(room, sending);
    EXPECT_TRUE(failed);
    EXPECT_EQ(sending.load(), 1u);
    const DescriptorReservation none(room, sending);
    EXPECT_FALSE(none);
  }
  EXPECT_EQ(room.left.load(), 1);
  EXPECT_EQ(sending.load(), 0u);
  {
    DescriptorReservation sent(room, sending);
    sent.sent();
  }
  EXPECT_EQ(room.left.load(), 0);
  EXPECT_EQ(sending.load(), 1u) << "until the service has received it, or its sender has died";
}

}  // namespace
}  // namespace cairn
