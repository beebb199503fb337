// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/sweep.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
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

// Killed after the store was cut and the size was set, and before the blocks went.
TEST_F(SweepTest, BlocksBehindTheEndOfACutThatWasLeftHalfDoneGo) {
  const int fd = testing::make_unnamed_file();
  ASSERT_GE(fd, 0);
  PosixBacking file(fd, O_RDWR);
  testing::AcceptingService service;
  service.memory = &memory_;
  StoreStatus status;
  ASSERT_EQ(store_status(fd, &status), 0);
  const ObjectIndex index = open_object(actor_, file, status, true);
  ASSERT_NE(index, ObjectIndex::kNone);
  Object& object = memory_.objects().at(index);
  object.clear(kObjectUnlinked);
  const std::vector<char> bytes(3 * kBlockBytes, 'b');
  const ObjectAccess access{actor_, index, file, service};
  ASSERT_EQ(write_object(access, 0, bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  object.lock.lock(writer_, memory_.owners());
  object.shape_sequence.fetch_add(1);
  ASSERT_EQ(ftruncate(fd, 100), 0);
  object.size.store(100);

  EXPECT_EQ(sweep_cuts(actor_), 0u) << "it lives, and is at it";
  EXPECT_EQ(object.blocks.load(), 3u);
  memory_.owners().advance(kWriter);
  EXPECT_EQ(sweep_cuts(actor_), 1u);
  EXPECT_EQ(object.blocks.load(), 1u);
  EXPECT_TRUE(object.is_changing_shape()) << "only who has the file open knows where it ends";
  wait_for_shape(access);
  EXPECT_FALSE(object.is_changing_shape());
  actor_.drop_leases();
  close(fd);
}

}  // namespace
}  // namespace cairn::node
