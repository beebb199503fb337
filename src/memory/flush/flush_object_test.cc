// SPDX-License-Identifier: Apache-2.0
#include "memory/flush/flush_object.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "base/clock.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/testing/faulty_backing.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

// A backing file of 10 bytes, and its object.
class ExtendStore : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = testing::make_unnamed_file();
    file_.emplace(fd_, O_RDWR);
    backing_.emplace(*file_);
    ASSERT_EQ(pwrite(fd_, kBytes.data(), kBytes.size(), 0), static_cast<ssize_t>(kBytes.size()));
    memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
    actor_ = testing::make_actor(memory_);
    index_ = testing::make_object(actor_, file_key(1, 2, 3));
    object().store_size.store(kBytes.size());
  }
  void TearDown() override { close(fd_); }

  Object& object() { return memory_.objects().at(index_); }
  struct stat status() const {
    struct stat status{};
    EXPECT_EQ(fstat(fd_, &status), 0);
    return status;
  }
  // The old bytes are untouched, and zeros follow.
  void expect_contents() const {
    std::array<char, 20> read{};
    read.fill('x');
    ASSERT_EQ(pread(fd_, read.data(), read.size(), 0), 20);
    for (std::size_t at = 0; at < read.size(); ++at)
      EXPECT_EQ(read[at], at < kBytes.size() ? kBytes[at] : 0);
  }

  static constexpr std::array<char, 10> kBytes = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  static constexpr std::uint64_t kEnd = 1 << 20;
  int fd_ = -1;
  std::optional<PosixBacking> file_;
  std::optional<testing::FaultyBacking> backing_;
  NodeMemory memory_;
  Actor actor_;
  ObjectIndex index_{};
};

TEST_F(ExtendStore, LeavesAHole) {
  const auto blocks = status().st_blocks;
  object().dirty_blocks.store(1);
  ASSERT_EQ(extend_store(actor_, index_, *backing_, kEnd), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(kEnd));
  EXPECT_EQ(status().st_blocks, blocks);
  EXPECT_EQ(object().store_size.load(), kEnd);
  expect_contents();
  ASSERT_EQ(extend_store(actor_, index_, *backing_, 100), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(kEnd)) << "never shorter";
}

// There, to set the size waits for the data on its way.
TEST_F(ExtendStore, WritesAByteOnANetworkWhileThereIsDataToCome) {
  const auto blocks = status().st_blocks;
  object().set(kObjectRemote);
  object().dirty_blocks.store(1);
  ASSERT_EQ(extend_store(actor_, index_, *backing_, kEnd), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(kEnd));
  EXPECT_GT(status().st_blocks, blocks);
  EXPECT_EQ(object().store_size.load(), kEnd);
  expect_contents();
  object().dirty_blocks.store(0);
  const auto more_blocks = status().st_blocks;
  ASSERT_EQ(extend_store(actor_, index_, *backing_, 2 * kEnd), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(2 * kEnd));
  EXPECT_EQ(status().st_blocks, more_blocks) << "nothing is to come: a hole";
}

// Should the file system have said too small a size, what is there must not be written over.
TEST_F(ExtendStore, WritesNoByteWhereThereMayBeData) {
  const auto blocks = status().st_blocks;
  object().set(kObjectRemote);
  object().dirty_blocks.store(1);
  object().store_size.store(kEnd);
  ASSERT_EQ(extend_store(actor_, index_, *backing_, kEnd), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(kEnd));
  EXPECT_EQ(status().st_blocks, blocks);
  expect_contents();
}

// What the store's times come to.
class SettleStore : public ExtendStore {
 protected:
  static constexpr std::int64_t kMtime = 1'300'000'000'123'456'789;

  void SetUp() override {
    ExtendStore::SetUp();
    object().size.store(kBytes.size());
    object().mtime_ns.store(kMtime);
    object().set(kObjectTimesDirty);
  }
  std::int64_t stored_time() const { return to_nanos(status().st_mtim); }
};

TEST_F(SettleStore, GivesAWholeFileItsOwnTime) {
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(stored_time(), kMtime);
  EXPECT_FALSE(object().has(kObjectTimesDirty));
}

TEST_F(SettleStore, KeepsTheFilesTimeBackWhileDataIsOnItsWay) {
  for (const std::int64_t mtime :
       {kMtime, std::int64_t{0}, 2 * kNanosPerSecond, -kNanosPerSecond}) {
    object().mtime_ns.store(mtime);
    object().dirty_blocks.store(1);
    ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
    EXPECT_GT(std::abs(stored_time() - mtime), 2 * kNanosPerSecond) << mtime;
    EXPECT_TRUE(object().has(kObjectTimesDirty));
    EXPECT_EQ(object().mtime_ns.load(), mtime);
    object().dirty_blocks.store(0);
    ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
    EXPECT_EQ(stored_time(), mtime);
    EXPECT_FALSE(object().has(kObjectTimesDirty));
  }
}

// The old bytes are there with their time.
TEST_F(SettleStore, LeavesTheTimeOfBytesThatAreStillTheOldOnes) {
  const timespec times[2] = {{0, UTIME_OMIT}, to_timespec(kMtime - 1000 * kNanosPerSecond)};
  ASSERT_EQ(futimens(fd_, times), 0);
  object().dirty_blocks.store(1);
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(stored_time(), kMtime - 1000 * kNanosPerSecond);
}

// The last of the data overtook the settling, and then somebody mapped the file.
TEST_F(SettleStore, LeavesNoUnfinishedTimeInThroughMode) {
  object().dirty_blocks.store(1);
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  object().dirty_blocks.store(0);
  object().through.store(1);
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(stored_time(), kMtime);
  object().through.store(0);
}

// open(O_RDONLY | O_TRUNC) has cut the store's file, and the object has not followed yet.
TEST_F(SettleStore, LeavesAGuardedFileAsShortAsTheKernelHasCutIt) {
  ASSERT_EQ(ftruncate(fd_, 0), 0);
  object().set(kObjectGuarded);
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(status().st_size, 0);
  object().clear(kObjectGuarded);
  ASSERT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(status().st_size, static_cast<off_t>(kBytes.size()));
}

TEST_F(SettleStore, TriesAgainAfterAStoreThatCannotBeAsked) {
  backing_->fail(testing::BackingCall::kStatus, EIO);
  EXPECT_EQ(settle_store(actor_, index_, *backing_), -EIO);
  EXPECT_TRUE(object().has(kObjectTimesDirty)) << "the times are still owed";
  object().through.store(1);
  EXPECT_EQ(settle_store(actor_, index_, *backing_), -EIO);
  EXPECT_TRUE(object().has(kObjectTimesDirty));
  object().through.store(0);
  backing_->heal();
  EXPECT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(stored_time(), kMtime);
}

// Another user's file: it may be written, but not stamped.
TEST_F(SettleStore, TakesTheKernelsTimeWhereItMayNotStamp) {
  const std::int64_t kernels = stored_time();
  backing_->fail(testing::BackingCall::kSetTime, EPERM);
  EXPECT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(object().mtime_ns.load(), kernels);
  EXPECT_FALSE(object().has(kObjectTimesDirty));
}

TEST_F(SettleStore, OwesATimeThatTheStoreFailedToTake) {
  backing_->fail(testing::BackingCall::kSetTime, EIO, 1, 1);
  EXPECT_EQ(settle_store(actor_, index_, *backing_), -EIO);
  EXPECT_TRUE(object().has(kObjectTimesDirty));
  EXPECT_EQ(object().mtime_ns.load(), kMtime);
  EXPECT_EQ(settle_store(actor_, index_, *backing_), 0);
  EXPECT_EQ(stored_time(), kMtime);
}

}  // namespace
}  // namespace cairn
