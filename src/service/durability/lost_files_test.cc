// SPDX-License-Identifier: Apache-2.0
// Which files a drain names after their store has failed, and for how long. Many of them have no
// descriptor in the service any more.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "memory/buffer/object_lifecycle.h"
#include "service/durability/testing/failed_sync_node.h"
#include "service/write_back/drain.h"

namespace cairn::node {
namespace {

using testing::SlowListener;
using testing::SyncfsFails;
using testing::while_fsync_fails;

class LostFilesTest : public testing::FailedSyncNode {
 protected:
  std::string path() const { return folder_.path() + "/file"; }
  UnsyncedFiles& unsynced() { return files_->unsynced(); }
  void close_known_by_name() {
    close_file(Fsync::kForgotten);
    files_->adopt_stored(fd_);
  }
  // A file of no object: nobody knows what of it is stored.
  void adopt_unknown_file() {
    files_->adopt_stored(UniqueFd(
        ::open((folder_.path() + "/unknown").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640)));
  }
  void evict(std::uint64_t begin, std::uint64_t end) {
    const ObjectAccess access(actor_, object_, *backing_, service_);
    ASSERT_EQ(drop_blocks(access, begin, end, false, PlacementReason::kThrough), 0);
  }
  // The service dies, and another one takes over what the keeper has.
  void succeed() {
    worker_->stop();
    worker_.reset();
    retirement_.reset();
    flusher_.reset();
    files_.emplace(memory_);
    const Owner self = memory_.owners().current(ClientSlot::kOfService);
    flusher_.emplace(memory_, *files_, self, FlushOptions{}, [](const std::string&) {});
    ASSERT_TRUE(files_->adopt(UniqueFd(::dup(fd_.get())), FileRoom()));
    files_->forget_missing();
    flusher_->take_over();
  }
  DrainOutcome full_drain() { return node::drain(memory_, *files_, *flusher_, DrainOptions()); }
};

// Nobody has heard what it has said, and the tiers have nothing of the file any more.
TEST_F(LostFilesTest, AnFsyncHasNotFailedWhereNoWriteHas) {
  write(0, "ours");
  store();
  evict(0, 4);
  record().note_trouble(kSyncUnderWay, true);
  const Owner self = memory_.owners().current(ClientSlot::kOfService);
  StoreWriter writer(memory_, *files_, self, FlushOptions{}, [](const std::string&) {});
  EXPECT_TRUE(writer.store_unheard(object_));
  const SyncfsFails fails;
  EXPECT_FALSE(writer.store_unheard(object_));
}

// The kernel tells the description of the file system once.
TEST_F(LostFilesTest, AFailureThatAnotherSyncOfTheStoreHasHeardIsTheDrainsToo) {
  write(0, "ours");
  store();
  close_known_by_name();
  lose_on_store();
  {
    const SyncfsFails fails;
    EXPECT_EQ(unsynced().sync_store(device()), EIO);
  }
  EXPECT_EQ(drain(), EIO);
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

TEST_F(LostFilesTest, AfterThatFailureFilesWithDescriptorsAreAskedThemselves) {
  write(0, "ours");
  store();
  adopt_unknown_file();
  {
    const SyncfsFails fails;
    EXPECT_EQ(unsynced().sync_store(device()), EIO);
  }
  while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
}

TEST_F(LostFilesTest, ADrainThatBeginsWhileAnotherOneFailsFailsToo) {
  write(0, "ours");
  store();
  SlowListener slow(unsynced().listener());
  files_->use_listener(&slow);
  int first = -1;
  std::thread one([&] { while_fsync_fails([&] { first = drain(); }); });
  while (!slow.has_failed) ::usleep(1000);
  EXPECT_FALSE(full_drain().stored);
  one.join();
  EXPECT_EQ(first, EIO);
  files_->use_listener(nullptr);
}

TEST_F(LostFilesTest, ADrainThatBeginsWhileAnFsyncFailsFailsToo) {
  record().durability.store(Durability::kStore);
  write(0, "ours");
  store();
  SlowListener slow(unsynced().listener());
  files_->use_listener(&slow);
  int first = 0;
  std::thread one([&] { while_fsync_fails([&] { first = flusher_->flush_now(object_, true); }); });
  while (!slow.has_failed) ::usleep(1000);
  EXPECT_FALSE(full_drain().stored);
  one.join();
  EXPECT_EQ(first, -EIO);
  files_->use_listener(nullptr);
}

TEST_F(LostFilesTest, ALostFileIsListedOnce) {
  write(0, "ours");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kOwed);
  while_fsync_fails(
      [&] {
        for (int drains = 0; drains < 3; ++drains) EXPECT_EQ(drain(), EIO);
        files_->adopt_stored(fd_);
        const SyncfsFails fails;
        EXPECT_EQ(drain(), EIO);
      },
      true);
  EXPECT_EQ(unsynced().lost().size(), 1U);
}

TEST_F(LostFilesTest, ADrainNamesAFileThatIsDirtyAgainWithTheErrorOfItsSync) {
  write(0, "ours");
  store();
  DrainOutcome outcome;
  while_fsync_fails([&] { outcome = full_drain(); });
  ASSERT_EQ(outcome.left.size(), 1U);
  EXPECT_EQ(outcome.left[0].path, path());
  EXPECT_EQ(outcome.left[0].error, EIO);
}

TEST_F(LostFilesTest, ADrainNamesAFileOnceOfWhichAPartIsLost) {
  write(0, std::string(2 * kBlockBytes, 'a'));
  store();
  evict(0, kBlockBytes);
  DrainOutcome outcome;
  while_fsync_fails([&] { outcome = full_drain(); });
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
  EXPECT_EQ(unsynced().lost().size(), 1U);
  ASSERT_EQ(outcome.left.size(), 1U);
  EXPECT_EQ(outcome.left[0].error, EIO);
  EXPECT_EQ(outcome.left[0].dirty_bytes, kBlockBytes);
}

TEST_F(LostFilesTest, UnknownFilesOfAStoreAreListedOnce) {
  for (int failures = 0; failures < 3; ++failures) {
    adopt_unknown_file();
    const SyncfsFails fails;
    EXPECT_EQ(drain(), EIO);
  }
  EXPECT_EQ(unsynced().lost().size(), 1U);
}

// There was no descriptor left for a place of the file system.
TEST_F(LostFilesTest, AStoreThatCannotBeAskedOwesItsSyncOn) {
  const UniqueFd file(::memfd_create("of_another_store", MFD_CLOEXEC));
  ASSERT_TRUE(file);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  files_->adopt_stored(file);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(drain(), ENODEV);
  EXPECT_EQ(drain(), ENODEV) << "nothing has been made durable since";
  EXPECT_TRUE(unsynced().lost().empty()) << "nothing has failed";
  files_->adopt_stored(file);
  EXPECT_EQ(drain(), 0);
}

TEST_F(LostFilesTest, OnlyWhatWasStoredSinceTheLastSyncCanBeLost) {
  record().durability.store(Durability::kStore);
  write(0, std::string(2 * kBlockBytes, 'a'));
  ASSERT_EQ(flusher_->flush_now(object_, true), 0);
  evict(0, kBlockBytes);
  write(kBlockBytes, "new");
  store();
  while_fsync_fails([&] {
    for (int drains = 0; drains < 3; ++drains) EXPECT_EQ(drain(), EIO);
  });
  EXPECT_TRUE(unsynced().lost().empty());
  EXPECT_EQ(flusher_->flush_now(object_, true), 0);
  EXPECT_EQ(drain(), 0);
}

TEST_F(LostFilesTest, TheHolesOfASparseFileAreNotLost) {
  record().durability.store(Durability::kStore);
  write(9 * kBlockBytes, "end");
  store();
  while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  EXPECT_TRUE(unsynced().lost().empty());
  store();
  EXPECT_EQ(drain(), 0);
}

TEST_F(LostFilesTest, ALossThatAnFsyncHasHeardIsTheDrainsToo) {
  record().durability.store(Durability::kStore);
  write(0, std::string(2 * kBlockBytes, 'a'));
  store();
  evict(0, kBlockBytes);
  lose_on_store();
  while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  EXPECT_EQ(flusher_->flush_now(object_, true), 0) << "it has stored and synced what there is";
  EXPECT_EQ(drain(), EIO);
  EXPECT_EQ(record().dirty_blocks.load(), 0U) << "the rest is not stored at each drain";
  // A program writes anew what was lost.
  write(0, std::string(kBlockBytes, 'b'));
  EXPECT_EQ(flusher_->flush_now(object_, true), 0);
  EXPECT_EQ(drain(), 0);
  EXPECT_TRUE(unsynced().lost().empty());
}

TEST_F(LostFilesTest, ALossThatABackgroundSyncHasHeardIsTheDrainsToo) {
  record().durability.store(Durability::kStore);
  write(0, std::string(2 * kBlockBytes, 'a'));
  store();
  evict(0, kBlockBytes);
  lose_on_store();
  while_fsync_fails(
      [&] { EXPECT_EQ(unsynced().sync_file(*files_->find(object_), SyncDepth::kAll), -EIO); });
  store();
  EXPECT_FALSE(full_drain().stored);
}

TEST_F(LostFilesTest, WithoutADescriptorALostFileIsFoundByItsName) {
  write(0, "ours");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kOwed);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  rlimit low = limit;
  low.rlim_cur = 3;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); }, true);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_EQ(unsynced().lost().size(), 1U);
  EXPECT_EQ(unsynced().lost()[0].place, nullptr);
  EXPECT_EQ(drain(), EIO) << "it is dirty again";
  store();
  EXPECT_EQ(drain(), 0);
}

// A program that writes a file under a temporary name renames it after the close.
TEST_F(LostFilesTest, AClosedFileIsFoundByItsNewName) {
  write(0, "ours");
  store();
  close_known_by_name();
  lose_on_store();
  ASSERT_EQ(::rename(path().c_str(), (folder_.path() + "/final").c_str()), 0);
  {
    const SyncfsFails fails;
    EXPECT_EQ(drain(), EIO);
  }
  EXPECT_TRUE(unsynced().lost().empty());
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

TEST_F(LostFilesTest, ALostFileIsNotGoneWhenItIsMoved) {
  write(0, "ours");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kOwed);
  ASSERT_EQ(::mkdir((folder_.path() + "/folder").c_str(), 0755), 0);
  while_fsync_fails(
      [&] {
        EXPECT_EQ(drain(), EIO);
        ASSERT_EQ(::rename(path().c_str(), (folder_.path() + "/folder/final").c_str()), 0);
        for (int drains = 0; drains < 3; ++drains) EXPECT_EQ(drain(), EIO);
      },
      true);
  lose_on_store();
  EXPECT_EQ(drain(), EIO) << "it is dirty again";
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

TEST_F(LostFilesTest, ALossIsNotTheNextFilesOfTheSameRecord) {
  write(0, "ours");
  store();
  close_file(Fsync::kOwed);
  evict(0, kBlockBytes);
  lose_on_store();
  const ObjectKey key = record().key();
  const Owner self = memory_.owners().current(ClientSlot::kOfService);
  ASSERT_TRUE(memory_.objects().reclaim(object_, self, memory_.owners()));
  ObjectIndex next{};
  for (std::uint64_t inode = 1'000'000'000; next != object_ && inode < 1'001'000'000; ++inode) {
    StoreStamp stamp;
    stamp.reclaims = memory_.objects().reclaims();
    Acquisition how;
    next = memory_.objects().acquire(file_key(raw(key.store), inode, 1), stamp, actor_.self,
                                     memory_.owners(), &how);
  }
  ASSERT_EQ(next, object_);
  while_fsync_fails([&] { EXPECT_EQ(drain(), EIO); });
  for (int drains = 0; drains < 3; ++drains) EXPECT_EQ(drain(), EIO);
  ASSERT_EQ(unsynced().lost().size(), 1U);
  EXPECT_EQ(unsynced().lost()[0].key, key);
}

TEST_F(LostFilesTest, ASuccessorNamesWhatItsPredecessorHasLost) {
  record().durability.store(Durability::kStore);
  write(0, std::string(2 * kBlockBytes, 'a'));
  store();
  evict(0, kBlockBytes);
  lose_on_store();
  while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  EXPECT_EQ(flusher_->flush_now(object_, true), 0) << "it has stored and synced what there is";
  succeed();
  EXPECT_EQ(drain(), EIO);
  ASSERT_EQ(unsynced().lost().size(), 1U);
  EXPECT_EQ(unsynced().lost()[0].path, path());
  // A program writes anew what was lost.
  write(0, std::string(2 * kBlockBytes, 'b'));
  EXPECT_EQ(flusher_->flush_now(object_, true), 0);
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(record().store_trouble.load(), 0U);
}

TEST_F(LostFilesTest, ASuccessorForgetsALostFileThatIsDeletedOrWrittenAnew) {
  record().durability.store(Durability::kStore);
  write(0, std::string(2 * kBlockBytes, 'a'));
  store();
  evict(0, kBlockBytes);
  while_fsync_fails([&] { EXPECT_EQ(flusher_->flush_now(object_, true), -EIO); });
  EXPECT_EQ(flusher_->flush_now(object_, true), 0);
  succeed();
  EXPECT_EQ(drain(), EIO);
  ASSERT_EQ(::unlink(path().c_str()), 0);
  (void)drain();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(record().store_trouble.load(), 0U);
}

// The kernel tells the description of the file system once, and the drain has not come yet.
TEST_F(LostFilesTest, ASuccessorHearsOfAFailureThatAnotherSyncOfTheStoreHasHeard) {
  write(0, "ours");
  store();
  close_known_by_name();
  lose_on_store();
  {
    const SyncfsFails fails;
    EXPECT_EQ(unsynced().sync_store(device()), EIO);
  }
  EXPECT_EQ(record().store_trouble.load(), kSyncUnderWay);
  succeed();
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
}

TEST_F(LostFilesTest, ASuccessorStoresAgainWhatAnFsyncWasUnderWayOf) {
  record().durability.store(Durability::kStore);
  write(0, "ours");
  store();
  SlowListener slow(unsynced().listener());
  files_->use_listener(&slow);
  std::uint32_t at_answer = 0;
  std::thread one([&] { while_fsync_fails([&] { (void)flusher_->flush_now(object_, true); }); });
  while (!slow.has_failed) ::usleep(1000);
  at_answer = record().store_trouble.load();
  one.join();
  EXPECT_EQ(at_answer, kSyncUnderWay);
  EXPECT_EQ(record().store_trouble.load(), 0U);
  // Its predecessor dies there: nobody has noted the failure.
  EXPECT_EQ(flusher_->flush_now(object_, true), 0);
  lose_on_store();
  record().note_trouble(kSyncUnderWay, true);
  succeed();
  EXPECT_EQ(record().dirty_blocks.load(), 1U);
  store();
  EXPECT_EQ(drain(), 0);
  EXPECT_EQ(on_store(4), "ours");
  EXPECT_EQ(record().store_trouble.load(), 0U);
}

TEST_F(LostFilesTest, ADescriptionThatIsYoungerThanADoubtDoesNotSettleIt) {
  acknowledge("acknowledged");
  store();
  close_file(Fsync::kForgotten);
  lose_on_store();
  {
    const SyncfsFails fails;
    EXPECT_EQ(unsynced().sync_store(device()), EIO);
  }
  // A program opens it again for writing.
  record().opens.store(1);
  record().writers.store(1);
  ASSERT_TRUE(
      files_->insert(object_, UniqueFd(::open(path().c_str(), O_RDWR | O_CLOEXEC)), FileRoom(), 1));
  EXPECT_EQ(files_->make_durable(), 0);
  EXPECT_NE(record().log_trouble.load() & kLogDoubted, 0U);
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_FALSE(record().is_in_log());
  EXPECT_EQ(on_store(12), "acknowledged");
}

TEST_F(LostFilesTest, ADoubtAboutAFileThatNobodyMayOpenStaysADoubt) {
  acknowledge("acknowledged");
  store();
  ASSERT_EQ(::fchmod(fd_.get(), 0444), 0);
  close_file(Fsync::kForgotten);
  {
    const SyncfsFails fails;  // of another program's data
    EXPECT_EQ(unsynced().sync_store(device()), EIO);
  }
  while_fsync_fails([&] { EXPECT_LT(retirement_->retire_all(0), 0); }, true);
  EXPECT_EQ(record().log_trouble.load(), kLogDoubted);
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_FALSE(record().is_in_log());
}

}  // namespace
}  // namespace cairn::node
