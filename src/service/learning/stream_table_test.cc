// SPDX-License-Identifier: Apache-2.0
#include "service/learning/stream_table.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

class StreamTableTest : public ::testing::Test {
 protected:
  StreamTableTest()
      : memory_(testing::make_memory(testing::memory_only(64 * kBlockBytes))), table_(memory_) {
    const Actor actor = testing::make_actor(memory_);
    for (std::uint64_t inode = 0; inode < files_.size(); ++inode)
      files_[inode] = testing::make_object(actor, file_key(1, 2 + inode, 3));
  }

  ToldAccess told(AccessKind kind, std::uint16_t slot, std::uint32_t description,
                  unsigned file = 0) const {
    ToldAccess access;
    access.event.owner = memory_.owners().current(slot);
    access.event.object = files_[file];
    access.event.stream = static_cast<DescriptionIndex>(description);
    access.event.kind = kind;
    return access;
  }
  // As it is found; the streams that end with it are gone.
  ToldAccess follow(AccessKind kind, std::uint16_t slot, std::uint32_t description,
                    unsigned file = 0) {
    ToldAccess access = told(kind, slot, description, file);
    table_.follow({&access, 1});
    table_.forget_ended();
    return access;
  }

  static constexpr std::uint16_t kParent = 3;
  static constexpr std::uint16_t kChild = 4;
  NodeMemory memory_;
  StreamTable table_;
  std::array<ObjectIndex, 2> files_{};
};

TEST_F(StreamTableTest, AProcessReadsADescriptionInOneStream) {
  const ToldAccess opened = follow(AccessKind::kOpen, kParent, 7);
  ASSERT_NE(opened.stream, nullptr);
  EXPECT_TRUE(opened.opens);
  const ToldAccess read = follow(AccessKind::kHit, kParent, 7);
  EXPECT_EQ(read.stream, opened.stream);
  EXPECT_FALSE(read.opens);
  const ToldAccess of_child = follow(AccessKind::kMiss, kChild, 7);
  EXPECT_NE(of_child.stream, opened.stream);
  EXPECT_FALSE(of_child.opens) << "it is the same description";
  EXPECT_EQ(of_child.stream->object(), files_[0]);
  EXPECT_EQ(of_child.stream->owner(), memory_.owners().current(kChild));
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(table_.open_count(), 1U);
}

TEST_F(StreamTableTest, WritesAndCloseAndWhatNamesNoDescriptionAreOfNoStream) {
  EXPECT_EQ(follow(AccessKind::kWrite, kParent, 7).stream, nullptr);
  EXPECT_EQ(follow(AccessKind::kClose, kParent, 7).stream, nullptr);
  EXPECT_EQ(follow(AccessKind::kMiss, kParent, 0).stream, nullptr);
  EXPECT_EQ(follow(AccessKind::kMiss, kParent, memory_.descriptions().capacity()).stream, nullptr);
  ToldAccess of_no_file = told(AccessKind::kMiss, kParent, 7);
  of_no_file.event.object = ObjectIndex::kNone;
  table_.follow({&of_no_file, 1});
  EXPECT_EQ(of_no_file.stream, nullptr);
  EXPECT_EQ(table_.size(), 0U);
}

TEST_F(StreamTableTest, AllStreamsEndWhicheverProcessClosesTheirDescription) {
  follow(AccessKind::kOpen, kParent, 7);
  follow(AccessKind::kMiss, kChild, 7);
  const ToldAccess late = follow(AccessKind::kClose, kChild, 7, 1);
  EXPECT_EQ(late.ends.streams.size(), 1U) << "the child has closed its own, the parent goes on";
  EXPECT_TRUE(late.ends.closed.empty());
  follow(AccessKind::kMiss, kChild, 7);
  const ToldAccess closed = follow(AccessKind::kClose, kChild, 7);
  EXPECT_EQ(closed.ends.streams.size(), 2U);
  EXPECT_EQ(closed.ends.closed, std::vector<ObjectIndex>{files_[0]});
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_EQ(table_.open_count(), 0U);
}

TEST_F(StreamTableTest, TheNextFileOfANumberEndsTheStreamWhoseCloseWasLost) {
  follow(AccessKind::kOpen, kParent, 7);
  const ToldAccess again = follow(AccessKind::kOpen, kParent, 7);
  EXPECT_EQ(again.ends.streams.size(), 1U);
  EXPECT_FALSE(again.opens) << "the description may be the same";
  follow(AccessKind::kMiss, kChild, 7);
  const ToldAccess next = follow(AccessKind::kMiss, kParent, 7, 1);
  EXPECT_EQ(next.ends.streams.size(), 1U) << "the child's last reads may come yet";
  EXPECT_EQ(next.ends.closed, std::vector<ObjectIndex>{files_[0]});
  EXPECT_TRUE(next.opens);
  EXPECT_EQ(next.stream->object(), files_[1]);
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_EQ(follow(AccessKind::kClose, kParent, 7, 1).ends.streams.size(), 1U);
  EXPECT_EQ(table_.size(), 1U) << "the child's is of another file";
  EXPECT_EQ(table_.open_count(), 0U);
}

TEST_F(StreamTableTest, StatesLastUntilAllHaveSeenTheEnd) {
  struct Number : std::enable_shared_from_this<Number> {
    int value = 0;
  };
  StreamSlot<Number> numbers(table_);
  StreamSlot<std::vector<int>> lists(table_);
  std::array batch = {told(AccessKind::kOpen, kParent, 7), told(AccessKind::kMiss, kParent, 7),
                      told(AccessKind::kClose, kParent, 7), told(AccessKind::kOpen, kParent, 7)};
  table_.follow(batch);
  AccessStream& stream = *batch[0].stream;
  EXPECT_EQ(batch[1].stream, &stream);
  EXPECT_NE(batch[3].stream, &stream);
  EXPECT_EQ(numbers.find(stream), nullptr);
  numbers.make(stream).value = 5;
  lists.make(stream).push_back(6);
  EXPECT_EQ(numbers.find(stream)->value, 5);
  int sum = 0;
  numbers.for_each([&](const Number& number) { sum += number.value; });
  EXPECT_EQ(sum, 5) << "its end comes later in the batch";
  const std::weak_ptr<Number> weak = numbers.find(stream)->weak_from_this();
  ASSERT_EQ(batch[2].ends.streams, std::vector<AccessStream*>{&stream});
  numbers.drop(stream);
  EXPECT_TRUE(weak.expired());
  EXPECT_EQ(numbers.size(), 0U);
  EXPECT_EQ(lists.find(stream)->front(), 6);
  lists.drop(stream);
  table_.forget_ended();
  EXPECT_EQ(table_.size(), 1U);
}

TEST_F(StreamTableTest, TheDeadEndTheirStreamsAndTheLastHolderItsDescription) {
  DescriptionTable& descriptions = memory_.descriptions();
  const Owner child = memory_.owners().current(kChild);
  const DescriptionIndex description = descriptions.create(files_[0], 0);
  const HoldIndex hold = descriptions.hold(description, child, HoldKind::kDescription);
  follow(AccessKind::kOpen, kParent, raw(description));
  EXPECT_TRUE(table_.follow_deaths().is_empty());
  memory_.owners().advance(kParent);
  const StreamEnds of_parent = table_.follow_deaths();
  EXPECT_EQ(of_parent.streams.size(), 1U);
  EXPECT_TRUE(of_parent.closed.empty()) << "the child has it";
  table_.forget_ended();
  follow(AccessKind::kMiss, kParent, raw(description));
  ASSERT_TRUE(descriptions.release(hold, child).last);
  descriptions.destroy(description);
  const StreamEnds of_child = table_.follow_deaths();
  EXPECT_EQ(of_child.streams.size(), 1U) << "nobody has it open any more";
  EXPECT_EQ(of_child.closed, std::vector<ObjectIndex>{files_[0]});
  table_.forget_ended();
  EXPECT_EQ(table_.size(), 0U);
  EXPECT_EQ(table_.open_count(), 0U);
}

TEST_F(StreamTableTest, TheStreamOfTheOldestUseMakesRoom) {
  for (std::uint32_t description = 1; description <= StreamTable::kStreamsMax; ++description)
    follow(AccessKind::kOpen, kParent, description);
  EXPECT_EQ(table_.size(), StreamTable::kStreamsMax);
  const AccessStream* first = follow(AccessKind::kHit, kParent, 1).stream;
  const ToldAccess one_more = follow(AccessKind::kOpen, kParent, StreamTable::kStreamsMax + 1);
  ASSERT_EQ(one_more.ends.streams.size(), 1U);
  EXPECT_NE(one_more.ends.streams[0], first);
  EXPECT_TRUE(one_more.ends.closed.empty()) << "its description is open all the same";
  EXPECT_EQ(table_.size(), StreamTable::kStreamsMax);
  EXPECT_EQ(table_.open_count(), StreamTable::kStreamsMax + 1);
  EXPECT_EQ(follow(AccessKind::kHit, kParent, 1).stream, first);
  EXPECT_TRUE(follow(AccessKind::kMiss, kParent, 2).ends.streams.size() == 1U) << "it begins anew";
}

}  // namespace
}  // namespace cairn::node
