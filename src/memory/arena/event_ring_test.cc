// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/event_ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace cairn {
namespace {

AccessEvent event_at(std::uint64_t offset, AccessKind kind = AccessKind::kHit) {
  AccessEvent event;
  event.offset = offset;
  event.cycles = offset + 1;
  event.object = static_cast<ObjectIndex>(offset + 2);
  event.length = static_cast<std::uint32_t>(offset + 3);
  event.stream = static_cast<DescriptionIndex>(offset + 4);
  event.descriptor = static_cast<std::int32_t>(offset + 5);
  event.kind = kind;
  event.advice = 7;
  return event;
}

class EventRingTest : public ::testing::Test {
 protected:
  std::unique_ptr<EventRing> ring_ = std::make_unique<EventRing>();
};

TEST_F(EventRingTest, GivesBackWhatWasPutIn) {
  ring_->put(event_at(100, AccessKind::kLate));
  ASSERT_EQ(ring_->head(), 1U);
  AccessEvent event;
  ASSERT_EQ(ring_->read(0, &event), EventRing::Got::kEvent);
  EXPECT_EQ(event.offset, 100U);
  EXPECT_EQ(event.cycles, 101U);
  EXPECT_EQ(raw(event.object), 102U);
  EXPECT_EQ(event.length, 103U);
  EXPECT_EQ(raw(event.stream), 104U);
  EXPECT_EQ(event.descriptor, 105);
  EXPECT_EQ(event.kind, AccessKind::kLate);
  EXPECT_EQ(event.advice, 7);
}

TEST_F(EventRingTest, AnEntryThatNobodyHasWrittenIsUnfinished) {
  AccessEvent event;
  EXPECT_EQ(ring_->read(0, &event), EventRing::Got::kUnfinished);
}

TEST_F(EventRingTest, WhatWasOverwrittenIsLost) {
  for (std::uint64_t at = 0; at <= EventRing::kEntries; ++at) ring_->put(event_at(at));
  AccessEvent event;
  EXPECT_EQ(ring_->read(0, &event), EventRing::Got::kLost);
  ASSERT_EQ(ring_->read(1, &event), EventRing::Got::kEvent);
  EXPECT_EQ(event.offset, 1U);
  ASSERT_EQ(ring_->read(EventRing::kEntries, &event), EventRing::Got::kEvent);
  EXPECT_EQ(event.offset, EventRing::kEntries);
}

TEST_F(EventRingTest, TheReaderIsWokenForMissesAndForHalfARing) {
  EXPECT_FALSE(ring_->put(event_at(0))) << "a short program is heard of at its end";
  EXPECT_FALSE(ring_->put(event_at(1)));
  EXPECT_TRUE(ring_->put(event_at(2, AccessKind::kMiss)));
  EXPECT_TRUE(ring_->put(event_at(3, AccessKind::kFirstUse)));
  EXPECT_FALSE(ring_->put(event_at(4, AccessKind::kOpen)));
  unsigned wakes = 0;
  for (std::uint32_t at = 5; at < 5 + EventRing::kEntries; ++at) wakes += ring_->put(event_at(at));
  EXPECT_EQ(wakes, 2U);
}

// The writer of place 0 wakes up a round later, and goes on where it was: what it still writes are
// fields of an entry that is another's by now, in any order from the first to the last.
TEST_F(EventRingTest, WhatALateWriterMixesIsLost) {
  constexpr std::size_t kHeadBytes = 64;
  constexpr std::size_t kTagBytes = 8;
  constexpr std::size_t kEntryBytes = (sizeof(EventRing) - kHeadBytes) / EventRing::kEntries;
  const auto entry = [](EventRing& ring) { return reinterpret_cast<char*>(&ring) + kHeadBytes; };
  const auto old = std::make_unique<EventRing>();
  old->put(event_at(1000));
  for (std::size_t from = kTagBytes; from < kEntryBytes; from += sizeof(std::uint32_t)) {
    const auto ring = std::make_unique<EventRing>();
    for (std::uint64_t at = 0; at <= EventRing::kEntries; ++at) ring->put(event_at(at));
    const std::size_t length = kEntryBytes - from;
    const bool differs = std::memcmp(entry(*ring) + from, entry(*old) + from, length) != 0;
    std::memcpy(entry(*ring) + from, entry(*old) + from, length);
    AccessEvent event;
    EXPECT_EQ(ring->read(EventRing::kEntries, &event),
              differs ? EventRing::Got::kLost : EventRing::Got::kEvent)
        << "from byte " << from;
    // The tag comes last; the entry then is of a place that has been overwritten.
    std::memcpy(entry(*ring), entry(*old), kTagBytes);
    EXPECT_NE(ring->read(EventRing::kEntries, &event), EventRing::Got::kEvent);
  }
}

// Every event that is read is one that was written, whoever writes at the same time.
TEST_F(EventRingTest, WritersDoNotMixTheirEvents) {
  constexpr std::uint64_t kEvents = 200'000;
  constexpr unsigned kWriters = 2;
  std::vector<std::thread> writers;
  for (unsigned writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (std::uint64_t at = 0; at < kEvents; ++at) ring_->put(event_at(at * kWriters + writer));
    });
  }
  std::uint64_t good = 0;
  std::uint32_t tail = 0;
  while (tail < kEvents * kWriters) {
    if (ring_->head() - tail > EventRing::kEntries) tail = ring_->head() - EventRing::kEntries;
    AccessEvent event;
    const EventRing::Got got = ring_->read(tail, &event);
    if (got == EventRing::Got::kUnfinished) {
      std::this_thread::yield();
      continue;
    }
    ++tail;
    if (got != EventRing::Got::kEvent) continue;
    ++good;
    ASSERT_EQ(event.cycles, event.offset + 1);
    ASSERT_EQ(raw(event.stream), static_cast<std::uint32_t>(event.offset + 4));
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_GT(good, 0U);
}

}  // namespace
}  // namespace cairn
