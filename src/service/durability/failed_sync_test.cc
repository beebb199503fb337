// SPDX-License-Identifier: Apache-2.0
// What becomes of data that the store has taken and could not make durable. The kernel says so once
// to each open description, and counts the pages as clean from then on.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "memory/buffer/object_lifecycle.h"
#include "service/durability/retirement.h"
#include "service/durability/testing/failing_syncs.h"
#include "service/durability/testing/logged_node.h"

namespace cairn::node {
namespace {

class FailedSyncTest : public testing::LoggedNode {
 protected:
  dev_t device() { return static_cast<dev_t>(raw(record().store())); }
  void acknowledge(const std::string& text) {
    write(0, text);
    ASSERT_EQ(make_durable(), 0);
    ASSERT_TRUE(record().is_in_log());
  }
  void store() { ASSERT_EQ(flusher_->flush_now(object_, false), 0); }
  int drain() { return files_->make_durable(); }
  enum class Fsync { kOwed, kForgotten };
  // Its last program has closed it. Forgotten: its descriptor could not be kept.
  void close_file(Fsync fsync) {
    record().writers.store(0);
    record().opens.store(0);
    const StoreFilePtr file = files_->find(object_);
    if (fsync == Fsync::kForgotten) file->sync_owed.store(false);
    ASSERT_TRUE(files_->drop_if_idle(file));
  }
  std::string on_store(std::size_t length) {
    std::string text(length, '?');
    const ssize_t got = ::pread(fd_.get(), text.data(), length, 0);
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }
  void lose_on_store() {
    struct stat status{};
    ASSERT_EQ(::fstat(fd_.get(), &status), 0);
    ASSERT_EQ(::ftruncate(fd_.get(), 0), 0);
    ASSERT_EQ(::ftruncate(fd_.get(), status.st_size), 0);
    const timespec times[] = {status.st_atim, status.st_mtim};
    ASSERT_EQ(::futimens(fd_.get(), times), 0);
  }
};

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

// Calls of a listener wait where the test says so.
class SlowListener final : public SyncListener {
 public:
  explicit SlowListener(SyncListener* next) : next_(next) {}
  bool file_synced(const StoreFile& file, int error) override {
    if (error != 0) {
      has_failed = true;
      ::usleep(100'000);
    }
    return next_->file_synced(file, error);
  }
  void store_sync_failed(StoreId store, int error) override {
    next_->store_sync_failed(store, error);
  }
  bool store_again(const ClosedFile& file) override { return next_->store_again(file); }

  std::atomic<bool> has_failed{false};

 private:
  SyncListener* const next_;
};

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

}  // namespace
}  // namespace cairn::node
