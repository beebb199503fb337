// SPDX-License-Identifier: Apache-2.0
#include "service/learning/read_streams.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/file_rule.h"
#include "memory/tiers/testing/test_memory.h"
#include "policy/prefetch/predictors.h"

namespace cairn::node {
namespace {

constexpr std::uint64_t kFileBlocks = 1000;

class ReadStreamsTest : public ::testing::Test {
 protected:
  ReadStreamsTest()
      : memory_(testing::make_memory(testing::memory_only(64 * kBlockBytes))),
        table_(memory_),
        streams_(memory_, table_) {
    Actor actor = testing::make_actor(memory_);
    Acquisition how;
    StoreStamp stamp;
    stamp.size = kFileBlocks * kBlockBytes;
    object_ = memory_.objects().acquire(file_key(1, 2, 3), stamp, actor.self, actor.owners(), &how);
  }

  ToldAccess told(AccessKind kind, std::uint64_t offset = 0, std::uint32_t length = 0,
                  std::uint16_t slot = kSlot) {
    ToldAccess access;
    access.event.owner = memory_.owners().current(slot);
    access.event.object = object_;
    access.event.stream = static_cast<DescriptionIndex>(stream_);
    access.event.descriptor = 7;
    access.event.kind = kind;
    access.event.offset = offset;
    access.event.length = length;
    return access;
  }
  void take(ToldAccess access) {
    table_.follow({&access, 1});
    streams_.take(access);
    table_.forget_ended();
  }
  void read_block(std::uint64_t block, AccessKind kind = AccessKind::kMiss) {
    take(told(kind, block * kBlockBytes, kBlockBytes));
  }
  void forget_dead() {
    streams_.forget(table_.follow_deaths());
    table_.forget_ended();
  }
  void set_hint(PrefetchHint hint) {
    ObjectHandling handling;
    handling.prefetch = hint;
    memory_.objects().at(object_).set_handling(handling);
  }
  // All that is wanted now, as block numbers.
  std::vector<std::uint32_t> wanted(unsigned count_max = 16) {
    std::vector<std::uint32_t> blocks;
    WantedBlocks next;
    while (streams_.next(count_max, {}, &next)) {
      EXPECT_EQ(next.object, object_);
      EXPECT_EQ(next.owner.slot(), kSlot);
      EXPECT_EQ(next.descriptor, 7);
      EXPECT_LE(next.count, count_max);
      for (unsigned at = 0; at < next.count; ++at) blocks.push_back(raw(next.first) + at);
    }
    return blocks;
  }

  static constexpr std::uint16_t kSlot = 3;
  NodeMemory memory_;
  StreamTable table_;
  ReadStreams streams_;
  ObjectIndex object_{};
  std::uint32_t stream_ = 9;
};

TEST_F(ReadStreamsTest, NothingIsWantedOfWhatIsReadOnce) {
  take(told(AccessKind::kOpen));
  read_block(10);
  EXPECT_TRUE(wanted().empty());
}

TEST_F(ReadStreamsTest, WhatFollowsInOrderIsWanted) {
  take(told(AccessKind::kOpen));
  for (std::uint64_t block = 10; block < 14; ++block) read_block(block);
  const std::vector<std::uint32_t> blocks = wanted();
  ASSERT_GE(blocks.size(), 2U);
  for (std::size_t at = 0; at < blocks.size(); ++at) EXPECT_EQ(blocks[at], 14 + at);
}

TEST_F(ReadStreamsTest, ReverseOrderIsFetchedInOneOperationToo) {
  for (std::uint64_t block = 500; block > 490; --block) read_block(block);
  WantedBlocks next;
  ASSERT_TRUE(streams_.next(16, {}, &next));
  EXPECT_GE(next.count, 2U);
  EXPECT_EQ(raw(next.first) + next.count, 491U);
}

// Two workers that take turns in one file would break what the kernel and the disk read ahead.
TEST_F(ReadStreamsTest, ThePieceBehindOneThatIsBeingFetchedWaits) {
  take(told(AccessKind::kOpen));
  for (std::uint64_t block = 10; block < 20; ++block) read_block(block);
  WantedBlocks first;
  ASSERT_TRUE(streams_.next(2, {}, &first));
  EXPECT_EQ(raw(first.first), 20U);
  BlocksAtWork now{first.object, {20, 2}};
  WantedBlocks next;
  EXPECT_FALSE(streams_.next(2, {&now, 1}, &next)) << "the next worker leaves it to the first";
  now.run.first = 1000;
  EXPECT_TRUE(streams_.next(2, {&now, 1}, &next)) << "elsewhere in the file";
  EXPECT_EQ(raw(next.first), 22U) << "what waited is still wanted";
}

TEST_F(ReadStreamsTest, NothingBehindTheEndIsWanted) {
  for (std::uint64_t block = kFileBlocks - 6; block < kFileBlocks - 1; ++block) read_block(block);
  EXPECT_EQ(wanted(), std::vector<std::uint32_t>{kFileBlocks - 1});
}

TEST_F(ReadStreamsTest, RulesAndAdviceSilenceOrAskForAll) {
  set_hint(PrefetchHint::kNone);
  take(told(AccessKind::kOpen));
  for (std::uint64_t block = 0; block < 8; ++block) read_block(block);
  EXPECT_TRUE(wanted().empty());
  set_hint(PrefetchHint::kWillNeed);
  take(told(AccessKind::kOpen));
  EXPECT_EQ(wanted().size(), kFileBlocks);
  set_hint(PrefetchHint::kNormal);
  take(told(AccessKind::kOpen));
  ToldAccess advice = told(AccessKind::kAdvice, 40 * kBlockBytes + 1, 2 * kBlockBytes);
  advice.event.advice = POSIX_FADV_WILLNEED;
  take(advice);
  EXPECT_EQ(wanted(), (std::vector<std::uint32_t>{40, 41, 42}));
  advice.event.advice = POSIX_FADV_RANDOM;
  take(advice);
  for (std::uint64_t block = 100; block < 108; ++block) read_block(block);
  EXPECT_TRUE(wanted().empty());
}

TEST_F(ReadStreamsTest, ReadsThatComeLateAreReadFurtherAhead) {
  std::size_t first = 0;
  for (std::uint64_t block = 0; block < 200; ++block) {
    read_block(block, AccessKind::kLate);
    const std::size_t ahead = wanted().size();
    if (block == 8) first = ahead;
  }
  read_block(200, AccessKind::kLate);
  EXPECT_GT(wanted().size(), first);
}

TEST_F(ReadStreamsTest, BeyondWhatRamIsForOnlyTheLateAreRead) {
  WantedBlocks next;
  for (std::uint64_t block = 0; block < 100; ++block) read_block(block, AccessKind::kFirstUse);
  EXPECT_FALSE(streams_.next_beyond(16, 300, {}, &next)) << "it is in time";
  for (std::uint64_t block = 100; block < 400; ++block) read_block(block, AccessKind::kLate);
  ASSERT_FALSE(wanted().empty());
  std::uint32_t expected = 400;
  while (streams_.next_beyond(16, 300, {}, &next)) {
    EXPECT_TRUE(next.is_for_below);
    EXPECT_EQ(raw(next.first), expected);
    expected += next.count;
  }
  EXPECT_EQ(expected, 700U) << "in order, and as far as is asked for";
  read_block(400, AccessKind::kLate);
  EXPECT_FALSE(streams_.next_beyond(16, 300, {}, &next))
      << "for one read more nothing is looked for";
  for (std::uint64_t block = 401; block < 480; ++block) read_block(block, AccessKind::kBelow);
  ASSERT_TRUE(streams_.next_beyond(16, 300, {}, &next));
  streams_.give_back(next, false);
  WantedBlocks again;
  ASSERT_TRUE(streams_.next_beyond(16, 300, {}, &again));
  EXPECT_EQ(again.first, next.first);
  streams_.note_evicted_unused();
  for (std::uint64_t block = 480; block < 580; ++block) read_block(block, AccessKind::kFirstUse);
  EXPECT_FALSE(streams_.next_beyond(16, 300, {}, &next)) << "it was too far";
}

TEST_F(ReadStreamsTest, WhatCouldNotBeFetchedIsWantedAgain) {
  for (std::uint64_t block = 10; block < 14; ++block) read_block(block);
  WantedBlocks next;
  ASSERT_TRUE(streams_.next(2, {}, &next));
  streams_.give_back(next, false);
  WantedBlocks again;
  ASSERT_TRUE(streams_.next(2, {}, &again));
  EXPECT_EQ(again.first, next.first);
  streams_.give_back(again, true);
  EXPECT_TRUE(wanted().empty());
  for (std::uint64_t block = 20; block < 28; ++block) read_block(block);
  EXPECT_TRUE(wanted().empty()) << "the file cannot be opened";
}

TEST_F(ReadStreamsTest, AStreamEndsWithItsDescriptionOrItsProcess) {
  take(told(AccessKind::kOpen));
  EXPECT_EQ(streams_.size(), 1U);
  take(told(AccessKind::kClose));
  EXPECT_EQ(streams_.size(), 0U);
  take(told(AccessKind::kOpen));
  memory_.owners().advance(kSlot);
  forget_dead();
  EXPECT_EQ(streams_.size(), 0U);
}

TEST_F(ReadStreamsTest, AStreamEndsWhicheverProcessClosesItsDescriptionLast) {
  constexpr std::uint16_t kChild = kSlot + 1;
  for (stream_ = 1; stream_ <= 3; ++stream_) {
    take(told(AccessKind::kOpen));
    // The second one is read by both.
    if (stream_ == 2) take(told(AccessKind::kMiss, 0, kBlockBytes, kChild));
  }
  EXPECT_EQ(streams_.size(), 4U);
  stream_ = 2;
  take(told(AccessKind::kClose, 0, 0, kChild));
  EXPECT_EQ(streams_.size(), 2U);
  stream_ = 1;
  ToldAccess other = told(AccessKind::kClose, 0, 0, kChild);
  other.event.object = static_cast<ObjectIndex>(raw(object_) + 1);
  take(other);
  EXPECT_EQ(streams_.size(), 2U) << "that is another file, whose description has the same number";
  take(told(AccessKind::kClose, 0, 0, kChild));
  EXPECT_EQ(streams_.size(), 1U);
}

TEST_F(ReadStreamsTest, AStreamEndsWhenTheLastHolderOfItsDescriptionIsKilled) {
  DescriptionTable& descriptions = memory_.descriptions();
  const DescriptionIndex description = descriptions.create(object_, 0);
  const Owner child = memory_.owners().current(kSlot + 1);
  const HoldIndex hold = descriptions.hold(description, child, HoldKind::kDescription);
  stream_ = raw(description);
  take(told(AccessKind::kOpen));
  forget_dead();
  EXPECT_EQ(streams_.size(), 1U);
  ASSERT_TRUE(descriptions.release(hold, child).last);
  descriptions.destroy(description);
  forget_dead();
  EXPECT_EQ(streams_.size(), 0U);
}

TEST_F(ReadStreamsTest, StreamsAreBounded) {
  for (stream_ = 1; stream_ <= 2 * StreamTable::kStreamsMax; ++stream_)
    take(told(AccessKind::kOpen));
  EXPECT_EQ(streams_.size(), StreamTable::kStreamsMax);
}

}  // namespace
}  // namespace cairn::node
