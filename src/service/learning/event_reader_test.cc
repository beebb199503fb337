// SPDX-License-Identifier: Apache-2.0
#include "service/learning/event_reader.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

class EventReaderTest : public ::testing::Test, public AccessObserver {
 protected:
  EventReaderTest()
      : memory_(testing::make_memory(testing::memory_only(64 * kBlockBytes))), streams_(memory_) {}

  void on_accesses(std::span<const ToldAccess> batch) override {
    const std::lock_guard lock(mutex_);
    seen_.insert(seen_.end(), batch.begin(), batch.end());
    come_.notify_all();
  }
  void on_deaths(const StreamEnds&) override {
    const std::lock_guard lock(mutex_);
    seen_at_deaths_ = seen_.size();
    come_.notify_all();
  }
  void tell(std::uint16_t slot, std::uint64_t offset, AccessKind kind) {
    AccessEvent event;
    event.offset = offset;
    event.kind = kind;
    event.owner = memory_.owners().current(slot);
    memory_.tell(event);
  }

  NodeMemory memory_;
  StreamTable streams_;
  std::mutex mutex_;
  std::condition_variable come_;
  std::vector<ToldAccess> seen_;
  std::size_t seen_at_deaths_ = 0;
};

TEST_F(EventReaderTest, ReadsAllRingsInTheOrderOfEach) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  for (std::uint64_t at = 0; at < 10; ++at)
    tell(static_cast<std::uint16_t>(2 + at % 2), at, AccessKind::kHit);
  EXPECT_TRUE(reader.take());
  ASSERT_EQ(seen_.size(), 10U);
  for (std::size_t at = 0; at < 5; ++at) {
    EXPECT_EQ(seen_[at].slot(), 2);
    EXPECT_EQ(seen_[at].event.offset, 2 * at);
    EXPECT_EQ(seen_[5 + at].event.offset, 2 * at + 1);
  }
  EXPECT_FALSE(reader.take());
}

// The successor's: its predecessor has heard of them, or nobody will.
TEST_F(EventReaderTest, BeginsBehindWhatWasToldBeforeItWasMade) {
  for (std::uint64_t at = 0; at < EventRing::kEntries + 100; ++at) tell(2, at, AccessKind::kHit);
  EventReader reader(memory_, streams_);
  reader.add(*this);
  tell(2, 7, AccessKind::kHit);
  reader.take();
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(seen_[0].event.offset, 7U);
  EXPECT_EQ(reader.counts().lost, 0U);
}

TEST_F(EventReaderTest, CountsWhatItDoesNotGet) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  for (std::uint64_t at = 0; at < EventRing::kEntries + 100; ++at) tell(2, at, AccessKind::kHit);
  reader.take();
  EXPECT_EQ(reader.counts().lost, 100U);
  EXPECT_EQ(reader.counts().passed_on, EventRing::kEntries);
}

// Each process writes its ring as it likes; learners go through the blocks of each read.
TEST_F(EventReaderTest, DoesNotPassOnWhatNoCallCanDo) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  AccessEvent event;
  event.owner = memory_.owners().current(2);
  event.kind = AccessKind::kMiss;
  for (const auto& [offset, length] :
       {std::pair<std::uint64_t, std::uint32_t>{0, UINT32_MAX}, {UINT64_MAX, 1}, {0, 1}}) {
    event.offset = offset;
    event.length = length;
    memory_.tell(event);
  }
  reader.take();
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_EQ(seen_[0].event.length, 0x7fff'f000U);
  EXPECT_EQ(seen_[1].event.length, 1U);
  EXPECT_EQ(reader.counts().lost, 1U);
}

TEST_F(EventReaderTest, GoesOnFromARingThatOnlySaysThatItIsFull) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  tell(2, 7, AccessKind::kHit);
  // The head is the second word.
  const std::uint32_t head = EventRing::kEntries - 1;
  std::memcpy(reinterpret_cast<char*>(&memory_.events(2)) + sizeof head, &head, sizeof head);
  reader.take();
  ASSERT_EQ(seen_.size(), 1U);
  EXPECT_EQ(reader.counts().lost, EventRing::kEntries - 2);
  tell(2, 8, AccessKind::kHit);
  reader.take();
  EXPECT_EQ(seen_.back().event.offset, 8U);
}

TEST_F(EventReaderTest, ThrowsAwayWhatItIsNotToKeep) {
  EventReader reader(memory_, streams_, 1);
  reader.add(*this);
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t at = 0; at < 1000; ++at) tell(2, at, AccessKind::kHit);
    reader.take();
  }
  EXPECT_GT(reader.counts().passed_on, 500U);
  EXPECT_LT(reader.counts().passed_on, 2000U);
  EXPECT_EQ(reader.counts().passed_on + reader.counts().lost, 100'000U);
}

TEST_F(EventReaderTest, WakesForAMissAndSleepsOtherwise) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  EXPECT_EQ(memory_.event_board().wanted.load(), EventLevel::kNone);
  reader.start();
  EXPECT_EQ(memory_.event_board().wanted.load(), EventLevel::kReads);
  for (int round = 0; round < 20; ++round) {
    tell(3, static_cast<std::uint64_t>(round), AccessKind::kMiss);
    std::unique_lock lock(mutex_);
    come_.wait(lock, [&] { return seen_.size() > static_cast<std::size_t>(round); });
  }
  reader.stop();
  EXPECT_EQ(memory_.event_board().wanted.load(), EventLevel::kNone);
}

TEST_F(EventReaderTest, ReportsAreOfTheHighestLevelThatIsAskedFor) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  const auto wanted = [&] { return memory_.event_board().wanted.load(); };
  reader.ask_for(EventLevel::kWaits);
  EXPECT_EQ(wanted(), EventLevel::kNone);  // nobody listens yet
  reader.start();
  EXPECT_EQ(wanted(), EventLevel::kWaits);
  reader.ask_for(EventLevel::kWrites);
  reader.ask_for(EventLevel::kWaits);
  EXPECT_EQ(wanted(), EventLevel::kWrites);
  reader.ask_no_more(EventLevel::kWrites);
  EXPECT_EQ(wanted(), EventLevel::kWaits);
  reader.ask_no_more(EventLevel::kWaits);
  EXPECT_EQ(wanted(), EventLevel::kWaits);
  reader.ask_no_more(EventLevel::kWaits);
  EXPECT_EQ(wanted(), EventLevel::kReads);
  reader.stop();
  EXPECT_EQ(wanted(), EventLevel::kNone);
}

TEST_F(EventReaderTest, WhatTheDeadHaveToldIsPassedOnBeforeTheyAreForgotten) {
  EventReader reader(memory_, streams_);
  reader.add(*this);
  reader.start();
  for (std::uint64_t at = 1; at < 10; ++at) tell(3, at, AccessKind::kHit);
  memory_.owners().advance(3);
  reader.note_deaths();
  std::unique_lock lock(mutex_);
  come_.wait(lock, [&] { return seen_at_deaths_ != 0; });
  EXPECT_EQ(seen_at_deaths_, 9U);
  EXPECT_FALSE(memory_.owners().is_alive(seen_.back().event.owner));
  lock.unlock();
  reader.stop();
}

}  // namespace
}  // namespace cairn::node
