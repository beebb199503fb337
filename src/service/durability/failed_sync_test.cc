// SPDX-License-Identifier: Apache-2.0
// What becomes of data that the store has taken and could not make durable. The kernel says so once
// to each open description, and counts the pages as clean from then on.
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "memory/buffer/object_lifecycle.h"
#include "service/durability/testing/failed_sync_node.h"

namespace cairn::node {
namespace {

using testing::SlowListener;

class FailedSyncTest : public testing::FailedSyncNode {};

TEST_F(FailedSyncTest, WhatFailsInTheMiddleOfARetirementStaysInTheLog) {
  acknowledge("acknowledged");
  const LogMark mark = logged_->begin_storing(object_);
  store();
  testing::while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
  EXPECT_EQ(files_->unsynced().sync_store(device()), 0);
  EXPECT_EQ(logged_->end_storing(object_, mark), -EIO);
  EXPECT_TRUE(record().is_in_log());
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_FALSE(record().is_in_log());
}

TEST_F(FailedSyncTest, ADoubtThatIsTakenBackIsNotForgottenByWhoBeganBefore) {
  acknowledge("acknowledged");
  const LogMark mark = logged_->begin_storing(object_);
  store();
  {
    const testing::SyncfsFails fails;
    EXPECT_EQ(files_->unsynced().sync_store(device()), EIO);
  }
  EXPECT_NE(record().log_trouble.load() & kLogDoubted, 0U);
  testing::while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  EXPECT_EQ(record().log_trouble.load(), 0U) << "all of it is dirty again";
  EXPECT_EQ(files_->unsynced().sync_store(device()), 0);
  EXPECT_EQ(logged_->end_storing(object_, mark), -EIO);
}

TEST_F(FailedSyncTest, ADoubtedFileWithoutADescriptorIsStoredAgain) {
  acknowledge("acknowledged");
  store();
  close_file(Fsync::kForgotten);
  lose_on_store();
  {
    const testing::SyncfsFails fails;
    EXPECT_LT(retirement_->retire_all(0), 0);
  }
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_FALSE(record().is_in_log());
  EXPECT_EQ(on_store(12), "acknowledged");
}

// Its block has been evicted, and a program has brought back another page of it since.
TEST_F(FailedSyncTest, APageThatTheTiersHaveNoMoreStaysInTheLog) {
  acknowledge(std::string(2 * kPageBytes, 'a'));
  store();
  const ObjectAccess access(actor_, object_, *backing_, service_);
  ASSERT_EQ(drop_blocks(access, 0, kBlockBytes, false, PlacementReason::kThrough), 0);
  write(kPageBytes, std::string(10, 'b'));
  store();
  testing::while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  EXPECT_EQ(flusher_->flush_now(object_, true), -EIO);
  EXPECT_TRUE(record().is_in_log());
}

// The store had lost the page before the block was read again.
TEST_F(FailedSyncTest, APageThatWasReadFromAStoreThatHadLostItStaysInTheLog) {
  acknowledge(std::string(kPageBytes, 'a'));
  store();
  const ObjectAccess access(actor_, object_, *backing_, service_);
  ASSERT_EQ(drop_blocks(access, 0, kBlockBytes, false, PlacementReason::kThrough), 0);
  lose_on_store();
  std::string bytes(kPageBytes, '?');
  ASSERT_EQ(read_object(access, 0, bytes.data(), bytes.size()), static_cast<ssize_t>(kPageBytes));
  ASSERT_EQ(bytes, std::string(kPageBytes, '\0'));
  testing::while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  EXPECT_EQ(flusher_->flush_now(object_, true), -EIO);
  EXPECT_TRUE(record().is_in_log());
}

TEST_F(FailedSyncTest, WhatAnotherProgramHasWrittenSinceIsNotOverwritten) {
  write(0, "ours");
  store();
  close_file(Fsync::kOwed);
  ASSERT_TRUE(files_->unsynced().keeps_any());
  ::usleep(20'000);
  ASSERT_EQ(::pwrite(fd_.get(), "THEIRS, LONGER", 14, 0), 14);
  testing::while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  store();
  EXPECT_EQ(on_store(20), "THEIRS, LONGER");
}

TEST_F(FailedSyncTest, WhatIsLostIsSaidUntilItIsStoredAgain) {
  write(0, "ours");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kOwed);
  testing::while_fsync_fails(
      [&] {
        EXPECT_EQ(drain(), EIO);
        EXPECT_EQ(drain(), EIO) << "nobody may open it";
      },
      true);
  EXPECT_EQ(files_->unsynced().lost().size(), 1U);
  lose_on_store();
  EXPECT_EQ(drain(), EIO) << "it is dirty again";
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

TEST_F(FailedSyncTest, WhatIsLostIsForgottenWithItsFile) {
  write(0, "ours");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kOwed);
  testing::while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); }, true);
  ASSERT_EQ(::unlink((folder_.path() + "/file").c_str()), 0);
  EXPECT_EQ(drain(), EIO);
  EXPECT_EQ(drain(), 0);
}

TEST_F(FailedSyncTest, AFileThatIsKnownByItsNameAloneIsStoredAgain) {
  write(0, "ours");
  store();
  close_file(Fsync::kForgotten);
  files_->adopt_stored(fd_);
  lose_on_store();
  {
    const testing::SyncfsFails fails;
    EXPECT_EQ(drain(), EIO);
  }
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

// The kernel tells one of them.
TEST_F(FailedSyncTest, TwoFsyncsThroughOneDescriptorBothFail) {
  acknowledge("acknowledged");
  store();
  SlowListener slow(files_->unsynced().listener());
  files_->use_listener(&slow);
  int second = 0;
  std::thread other([&] {
    while (!slow.has_failed) ::usleep(1000);
    second = flusher_->flush_now(object_, true);
  });
  testing::while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  other.join();
  EXPECT_EQ(second, -EIO);
  EXPECT_TRUE(record().is_in_log());
  files_->use_listener(nullptr);
}

// It finds nothing dirty, and the kernel has told the first one.
TEST_F(FailedSyncTest, AnFsyncThatBeginsWhileTheFileTurnsDirtyAgainFailsToo) {
  acknowledge("acknowledged");
  store();
  const BucketIndex bucket = memory_.directory().find(object_, block_of(0));
  ASSERT_NE(bucket, BucketIndex::kNone);
  int first = 1;
  int second = 1;
  std::thread one;
  std::thread two;
  {
    const LockedBlock busy(actor_.worker(), bucket);  // a program is copying
    one = std::thread(
        [&] { testing::while_fsync_fails([&] { first = flusher_->flush_now(object_, true); }); });
    while (record().sync_failures.load() == 0) ::usleep(1000);
    two = std::thread([&] { second = flusher_->flush_now(object_, true); });
    ::usleep(100'000);
  }
  one.join();
  two.join();
  EXPECT_EQ(first, -EIO);
  EXPECT_EQ(second, -EIO);
  EXPECT_TRUE(record().is_in_log());
}

}  // namespace
}  // namespace cairn::node
