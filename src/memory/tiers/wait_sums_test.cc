// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/wait_sums.h"

#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

constexpr ObjectIndex kFile{3};
// Has the same place.
constexpr ObjectIndex kNeighbour{3 + WaitSums::kFiles};

class WaitSumsTest : public ::testing::Test {
 protected:
  void write(ObjectIndex object, std::uint64_t bytes, std::uint64_t cycles = 256) {
    sums_.add(memory_, actor_.self,
              {.object = object, .descriptor = 7, .written_bytes = bytes, .write_cycles = cycles});
  }
  std::uint64_t told(ObjectIndex object) const {
    const EventRing& ring = memory_.events(actor_.self.slot());
    std::uint64_t bytes = 0;
    for (std::uint32_t place = 0; place < ring.head(); ++place) {
      AccessEvent event;
      EXPECT_EQ(ring.read(place, &event), EventRing::Got::kEvent);
      EXPECT_EQ(event.kind, AccessKind::kWaited);
      EXPECT_EQ(event.descriptor, 7);
      if (event.object == object) bytes += event.length;
    }
    return bytes;
  }
  std::uint32_t events() const { return memory_.events(actor_.self.slot()).head(); }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor_ = testing::make_actor(memory_);
  WaitSums sums_;
};

TEST_F(WaitSumsTest, TheFirstWaitIsToldAtOnceAndSmallOnesTogether) {
  write(kFile, 100);
  EXPECT_EQ(told(kFile), 100U);
  for (int call = 0; call < 1000; ++call) write(kFile, 100);
  EXPECT_EQ(events(), 1U);
  sums_.tell_of(memory_, actor_.self, kFile);
  EXPECT_EQ(events(), 2U);
  EXPECT_EQ(told(kFile), 100'100U);
  sums_.tell_of(memory_, actor_.self, kFile);
  EXPECT_EQ(events(), 2U);
}

TEST_F(WaitSumsTest, WhatIsLargeOrLongIsToldByItself) {
  write(kFile, 1);
  write(kFile, WaitSums::kTellBytes);
  EXPECT_EQ(told(kFile), WaitSums::kTellBytes + 1);
  write(kFile, 1, WaitSums::kTellCycles);
  EXPECT_EQ(told(kFile), WaitSums::kTellBytes + 2);
}

TEST_F(WaitSumsTest, AFileThatTakesThePlaceOfAnotherLosesNothingOfIt) {
  write(kFile, 1);
  write(kFile, 10);
  write(kNeighbour, 100);
  EXPECT_EQ(told(kFile), 11U);
  write(kFile, 1000);
  write(kFile, 5);
  sums_.tell_all(memory_, actor_.self);
  EXPECT_EQ(told(kFile), 1016U);
  EXPECT_EQ(told(kNeighbour), 100U);
}

TEST(WaitTimes, PassThroughAWord) {
  const WaitTimes times{1'000'000'000, 5'000'000};
  const WaitTimes read = WaitTimes::from_packed(times.packed());
  EXPECT_NEAR(static_cast<double>(read.read_cycles), 1e9, WaitTimes::kUnitCycles);
  EXPECT_NEAR(static_cast<double>(read.write_cycles), 5e6, WaitTimes::kUnitCycles);
  const WaitTimes most = WaitTimes::from_packed(WaitTimes{UINT64_MAX / 2, 0}.packed());
  EXPECT_EQ(most.read_cycles, WaitTimes::kUnitCycles * UINT32_MAX);
  EXPECT_EQ(most.write_cycles, 0U);
}

}  // namespace
}  // namespace cairn
