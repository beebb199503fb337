// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/store_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "memory/backing/posix_backing.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/write_back/flusher.h"

namespace cairn::node {
namespace {

class StoreFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(4 * kBlockBytes));
    actor_ = testing::make_actor(memory_);
    fd_ = UniqueFd(testing::make_unnamed_file());
    StoreStatus status;
    ASSERT_EQ(store_status(fd_.get(), &status), 0);
    object_ = testing::make_object(actor_, status.key);
    files_.emplace(memory_);
  }
  bool hand_over(std::uint32_t run) {
    return files_->insert(object_, UniqueFd(dup(fd_.get())), FileRoom(), run);
  }

  NodeMemory memory_;
  Actor actor_;
  UniqueFd fd_;
  ObjectIndex object_{};
  std::optional<StoreFiles> files_;
};

// Two clients that write a file for the first time at once both hand it over.
TEST_F(StoreFilesTest, AFileThatIsHandedOverTwiceOwesWhatItOwed) {
  ASSERT_TRUE(hand_over(1));
  const StoreFilePtr file = files_->find(object_);
  ASSERT_NE(file, nullptr);
  file->sync_owed.store(true);
  file->failures.store(3);
  file->queued.store(true);
  EXPECT_TRUE(hand_over(2));
  EXPECT_EQ(files_->find(object_), file) << "the flusher has it in its queue";
  EXPECT_EQ(files_->count(), 1u);
  EXPECT_TRUE(file->sync_owed.load());
  EXPECT_EQ(file->failures.load(), 3u);
  EXPECT_EQ(file->run.load(), 1u);
}

TEST_F(StoreFilesTest, WhatIsStoredWithoutBeingMadeDurableIsOwed) {
  ASSERT_TRUE(hand_over(1));
  const StoreFilePtr file = files_->find(object_);
  memory_.objects().at(object_).opens.store(1);
  memory_.objects().at(object_).writers.store(1);  // else the descriptor is given up
  Flusher flusher(memory_, *files_, memory_.owners().current(ClientSlot::kOfService),
                  FlushOptions{}, [](const std::string&) {});
  EXPECT_EQ(flusher.flush_now(object_, false), 0);
  EXPECT_TRUE(file->sync_owed.load());
  EXPECT_EQ(flusher.flush_now(object_, true), 0);
  EXPECT_FALSE(file->sync_owed.load());
}

// Its room on the store is wanted by others; what nobody can find needs not be durable.
TEST_F(StoreFilesTest, WhatIsKeptForFsyncAloneIsLetGoOfWhenItsFileIsDeleted) {
  std::string path = ::testing::TempDir() + "cairn-store-files-XXXXXX";
  fd_ = UniqueFd(::mkstemp(path.data()));
  StoreStatus status;
  ASSERT_EQ(store_status(fd_.get(), &status), 0);
  object_ = testing::make_object(actor_, status.key);
  ASSERT_TRUE(hand_over(1));
  files_->find(object_)->sync_owed.store(true);
  memory_.objects().at(object_).opens.store(0);
  ASSERT_TRUE(files_->drop_if_idle(files_->find(object_)));
  EXPECT_TRUE(files_->unsynced().keeps_any());
  files_->unsynced().release_deleted();
  EXPECT_TRUE(files_->unsynced().keeps_any()) << "it has its name";
  ASSERT_EQ(::unlink(path.c_str()), 0);
  files_->unsynced().release_deleted();
  EXPECT_FALSE(files_->unsynced().keeps_any());
}

TEST_F(StoreFilesTest, OfAFileWithoutANameNothingIsKept) {
  ASSERT_TRUE(hand_over(1));  // made without one
  files_->find(object_)->sync_owed.store(true);
  memory_.objects().at(object_).opens.store(0);
  ASSERT_TRUE(files_->drop_if_idle(files_->find(object_)));
  EXPECT_FALSE(files_->unsynced().keeps_any());
}

}  // namespace
}  // namespace cairn::node
