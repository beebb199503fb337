// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <vector>

#include "memory/tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

// Bytes come before times: where somebody has died in the midst of a write, what is kept of the
// file by its times may be older than the file.
class SweepTest : public ::testing::Test {
 protected:
  static constexpr std::uint16_t kWriter = 2;

  ObjectIndex opened(std::uint64_t inode, int flags) {
    const ObjectIndex object = testing::make_object(actor_, file_key(1, inode, 1));
    const DescriptionIndex description =
        memory_.descriptions().create(object, static_cast<std::uint32_t>(flags));
    EXPECT_NE(memory_.descriptions().hold(description, writer_, HoldKind::kDescription),
              HoldIndex::kNone);
    return object;
  }
  void sweep() { sweep_cut_writes(memory_, std::vector{writer_}); }
  std::uint32_t cut_writes(ObjectIndex object) const {
    return memory_.objects().at(object).cut_writes.load();
  }

  NodeMemory memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor_ = testing::make_actor(memory_);
  Owner writer_ = memory_.owners().current(kWriter);
  ClientSlot& slot_ = memory_.slot(kWriter);
};

TEST_F(SweepTest, TheDeathOfOneThatMightOnlyWriteIsNoChange) {
  const ObjectIndex open = opened(7, O_RDWR);
  slot_.workers.store(ClientSlot::kShards);
  sweep();
  EXPECT_EQ(cut_writes(open), 0u);
}

TEST_F(SweepTest, TheDeathOfOneThatIsWritingIsAChange) {
  const ObjectIndex open = opened(7, O_RDWR);
  const ObjectIndex written = opened(8, O_RDWR);
  slot_.shards[3].writing.store(raw(written));
  sweep();
  EXPECT_EQ(cut_writes(open), 0u);
  EXPECT_NE(cut_writes(written), 0u);
}

TEST_F(SweepTest, AlsoWhereAnotherThreadHasClosedTheFileMeanwhile) {
  const ObjectIndex closed = testing::make_object(actor_, file_key(1, 9, 1));
  slot_.shards[0].writing.store(raw(closed));
  sweep();
  EXPECT_NE(cut_writes(closed), 0u);
}

TEST_F(SweepTest, OneOfManyThreadsMayHaveBeenWriting) {
  const ObjectIndex written = opened(7, O_WRONLY);
  const ObjectIndex read = opened(8, O_RDONLY);
  slot_.workers.store(ClientSlot::kShards + 1);
  sweep();
  EXPECT_NE(cut_writes(written), 0u);
  EXPECT_EQ(cut_writes(read), 0u);
}

// A chunk of a file stays away when the file gets a record anew.
TEST_F(SweepTest, NoNumberOfACutWriteComesBack) {
  const ObjectTable& objects = memory_.objects();
  const ObjectIndex written = opened(7, O_RDWR);
  objects.note_cut_write(written);
  objects.note_cut_write(written);
  const ObjectIndex other = opened(8, O_RDWR);
  EXPECT_GE(cut_writes(other), cut_writes(written)) << "it may be the same file";
  const std::uint32_t before = cut_writes(other);
  objects.note_cut_write(other);
  EXPECT_GT(cut_writes(other), before);
}

}  // namespace
}  // namespace cairn::node
