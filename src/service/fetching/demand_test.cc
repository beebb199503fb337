// SPDX-License-Identifier: Apache-2.0
#include "service/fetching/demand.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <vector>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

// A program in slot 1 that reads file 7 from the store, and goes on.
class DemandTest : public ::testing::Test {
 protected:
  static constexpr auto kRead = static_cast<ObjectIndex>(7);
  static constexpr auto kOther = static_cast<ObjectIndex>(8);

  DemandTest() {
    memory_.events(1).demanded.store(raw(kRead));
    memory_.events(1).demands.store(1);
  }

  bool waits(const std::vector<FileOfProcess>& said) const {
    constexpr std::chrono::milliseconds kMuchLessThanItWaits(5);
    constexpr std::array<std::uint16_t, 2> kSlots{1, 2};
    // A machine that is busy may delay one that does not wait, but not each time.
    for (int look = 0; look < 5; ++look) {
      const auto begin = std::chrono::steady_clock::now();
      wait_for_demand(memory_, kSlots, said);
      if (std::chrono::steady_clock::now() - begin < kMuchLessThanItWaits) return false;
    }
    return true;
  }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(16 * testing::kMiB));
};

TEST_F(DemandTest, AProgramThatWaitsForTheStoreComesFirst) { EXPECT_TRUE(waits({})); }

TEST_F(DemandTest, WhatAProgramHasSaidItNeedsIsWhatItWaitsFor) {
  EXPECT_FALSE(waits({{1, kOther}, {1, kRead}}));
}

TEST_F(DemandTest, ItsReadsOfOtherFilesAndThoseOfOthersComeFirst) {
  EXPECT_TRUE(waits({{1, kOther}, {2, kRead}}));
}

TEST_F(DemandTest, NobodyWaitsForAProgramThatDoesNotRead) {
  memory_.events(1).demands.store(0);
  EXPECT_FALSE(waits({}));
}

}  // namespace
}  // namespace cairn::node
