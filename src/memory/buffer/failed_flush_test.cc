// SPDX-License-Identifier: Apache-2.0
// The blocks that a flush leaves behind when it could not store all of its batch.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "base/testing/temporary_folder.h"
#include "memory/backing/no_backing.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/testing/faulty_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/flush/flush_object.h"
#include "memory/flush/orphan_words.h"
#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

using testing::BackingCall;

class FailedFlush : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(testing::kMiB));
    service_.memory = &*memory_;
    actor_ = testing::make_actor(*memory_);
    actor_.counters = &memory_->slot(1).shards[0];
    fd_ = testing::make_unnamed_file();
    file_.emplace(fd_, O_RDWR);
    backing_.emplace(*file_);
    StoreStatus status;
    ASSERT_EQ(store_status(fd_, &status), 0);
    index_ = open_object(actor_, *backing_, status, true);
    ASSERT_NE(index_, ObjectIndex::kNone);
  }
  void TearDown() override {
    actor_.drop_leases();
    close(fd_);
  }

  ObjectAccess access() { return ObjectAccess{actor_, index_, *backing_, service_}; }
  Object& object() { return memory_->objects().at(index_); }
  void put(BlockNumber block, const std::string& bytes) {
    ASSERT_EQ(write_object(access(), offset_of(block), bytes.data(), bytes.size()),
              static_cast<ssize_t>(bytes.size()));
  }
  std::string stored(std::uint64_t offset, std::size_t length) const {
    std::string bytes(length, 'x');
    const ssize_t got = pread(fd_, bytes.data(), length, static_cast<off_t>(offset));
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return bytes;
  }

  std::optional<NodeMemory> memory_;
  testing::AcceptingService service_;
  Actor actor_;
  std::optional<PosixBacking> file_;
  std::optional<testing::FaultyBacking> backing_;
  int fd_ = -1;
  ObjectIndex index_ = ObjectIndex::kNone;
};

// Both runs make the store longer, and the second one can.
TEST_F(FailedFlush, TheErrorOfOneRunIsThatOfTheBatchAndAllOfItStaysDirty) {
  const std::string bytes(kPageBytes, 'b');
  put(BlockNumber{0}, bytes);
  put(BlockNumber{2}, bytes);
  backing_->fail(BackingCall::kWrite, EIO, 1, 1);
  EXPECT_EQ(sync_object(access(), false, nullptr), -EIO);
  EXPECT_EQ(object().dirty_blocks.load(), 2u);
  EXPECT_EQ(sync_object(access(), false, nullptr), 0);
  EXPECT_EQ(object().dirty_blocks.load(), 0u);
  EXPECT_TRUE(stored(0, kPageBytes) == bytes);
}

// A cut holds the lock while it waits for the flush, and takes the store's time for the file's.
TEST_F(FailedFlush, AFileThatIsBeingCutIsNotMarkedAsUnfinished) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  object().writers.store(0);
  object().dirty_blocks.fetch_add(1);  // there is more to come
  const Owner cutter = memory_->owners().current(2);
  ASSERT_TRUE(object().lock.try_lock(cutter));
  EXPECT_EQ(flush_object(actor_, FlushRequest(index_, *backing_)).error, 0);
  EXPECT_EQ(backing_->count(BackingCall::kSetTime), 0u);
  object().lock.unlock(cutter);
  put(BlockNumber{0}, std::string(kPageBytes, 'c'));
  EXPECT_EQ(flush_object(actor_, FlushRequest(index_, *backing_)).error, 0);
  EXPECT_EQ(backing_->count(BackingCall::kSetTime), 1u);
  object().dirty_blocks.fetch_sub(1);
}

TEST_F(FailedFlush, AStoreThatTakesLittleAtATimeGetsAllOfIt) {
  const std::string bytes(3 * kPageBytes, 'b');
  put(BlockNumber{0}, bytes);
  backing_->shorten(BackingCall::kWrite, 1000);
  EXPECT_EQ(sync_object(access(), false, nullptr), 0);
  EXPECT_EQ(object().dirty_blocks.load(), 0u);
  EXPECT_TRUE(stored(0, bytes.size()) == bytes);
  EXPECT_GE(backing_->count(BackingCall::kWrite), 13u);
}

TEST_F(FailedFlush, AStoreThatFailsInTheMiddleLeavesTheBlockDirty) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  backing_->shorten(BackingCall::kWrite, 1000);
  backing_->fail(BackingCall::kWrite, ENOSPC, 3, 1);
  EXPECT_EQ(sync_object(access(), false, nullptr), -ENOSPC);
  EXPECT_EQ(object().dirty_blocks.load(), 1u);
  EXPECT_EQ(object().error_number.load(), ENOSPC);
  EXPECT_EQ(sync_object(access(), true, nullptr), 0);
  EXPECT_FALSE(object().has(kObjectFailing));
}

// After it the kernel may have dropped what it had taken.
TEST_F(FailedFlush, AFailedSyncOfTheStoreMakesTheBlocksDirtyAgain) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  backing_->fail(BackingCall::kSync, EIO, 1, 1);
  EXPECT_EQ(sync_object(access(), true, nullptr), -EIO);
  EXPECT_EQ(object().dirty_blocks.load(), 1u);
  EXPECT_EQ(sync_object(access(), true, nullptr), 0);
  EXPECT_EQ(object().dirty_blocks.load(), 0u);
}

TEST_F(FailedFlush, AReadThatTheStoreRefusesLeavesNoBlock) {
  ASSERT_EQ(ftruncate(fd_, kPageBytes), 0);
  object().size.store(kPageBytes);
  object().store_size.store(kPageBytes);
  backing_->fail(BackingCall::kRead, EIO, 1, 1);
  std::string bytes(kPageBytes, 'x');
  EXPECT_EQ(read_object(access(), 0, bytes.data(), bytes.size()), -EIO);
  EXPECT_EQ(object().blocks.load(), 0u);
  EXPECT_EQ(read_object(access(), 0, bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  EXPECT_TRUE(bytes == std::string(kPageBytes, '\0'));
}

// A scratch object: its bytes are in the tiers, and nowhere else.
TEST_F(FailedFlush, AnObjectWithoutAStoreKeepsItsBytesDirty) {
  NoBacking nothing(ObjectKey{ObjectKind::kScratch, StoreId{}, FileId{1, 0}});
  StoreStatus status;
  ASSERT_EQ(nothing.status(&status), 0);
  const ObjectIndex scratch = open_object(actor_, nothing, status, true);
  ASSERT_NE(scratch, ObjectIndex::kNone);
  EXPECT_EQ(memory_->objects().at(scratch).kind(), ObjectKind::kScratch);
  const ObjectAccess its{actor_, scratch, nothing, service_};
  const std::string bytes(100, 'b');
  ASSERT_EQ(write_object(its, kPageBytes, bytes.data(), bytes.size()), 100);
  EXPECT_EQ(sync_object(its, false, nullptr), -ENOSPC);
  EXPECT_EQ(memory_->objects().at(scratch).dirty_blocks.load(), 1u);
  std::string got(kPageBytes + 100, 'x');
  ASSERT_EQ(read_object(its, 0, got.data(), got.size()), static_cast<ssize_t>(got.size()));
  EXPECT_TRUE(got == std::string(kPageBytes, '\0') + bytes);
  ASSERT_EQ(truncate_object(its, 0), 0);
  EXPECT_EQ(memory_->objects().at(scratch).dirty_blocks.load(), 0u);
  EXPECT_EQ(close_object(its, true), -ENOSPC) << "the failed flush is told of once";
}

// Nobody serves the node any more, and its log has older bytes of the file.
class FlushAlone : public FailedFlush {
 protected:
  void SetUp() override {
    FailedFlush::SetUp();
    ServiceBoard& board = memory_->service_board();
    std::snprintf(board.log_folder, ServiceBoard::kFolderMax, "%s", folder_.path().c_str());
    board.has_log.store(1);
    memory_->owners().advance(ClientSlot::kOfService);
    ASSERT_FALSE(memory_->is_served());
    object().log_position.store(1);
  }
  std::uintmax_t words() const {
    const std::filesystem::path file = folder_.path() + "/" + OrphanWord::kFileName;
    return std::filesystem::exists(file) ? std::filesystem::file_size(file) : 0;
  }
  testing::TemporaryFolder folder_{"flush-alone"};
};

// The kernel tells of it once, and counts the pages as clean: they have to be written again before
// anybody says that the store has them.
TEST_F(FlushAlone, AfterAFailedFsyncOfTheStoreAllOfItIsStoredAgain) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  backing_->fail(BackingCall::kSync, EIO, 1, 1);
  EXPECT_EQ(sync_object(access(), true, nullptr), -EIO);
  EXPECT_EQ(words(), 0u);
  const unsigned writes = backing_->count(BackingCall::kWrite);
  EXPECT_EQ(sync_object(access(), true, nullptr), 0);
  EXPECT_GT(backing_->count(BackingCall::kWrite), writes);
  EXPECT_EQ(words(), sizeof(OrphanWord));
}

// Before a cut, which itself cannot say so.
TEST_F(FlushAlone, AFailureOnTheWayOutOfTheLogIsToldByTheNextFsync) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  backing_->fail(BackingCall::kSync, EIO, 1, 1);
  const std::uint32_t errors = object().error_sequence.load();
  EXPECT_EQ(truncate_object(access(), 100), 0);
  EXPECT_NE(object().error_sequence.load(), errors);
}

TEST_F(FlushAlone, WithoutAWordItIsNotDurable) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  std::filesystem::create_directory(folder_.path() + "/" + OrphanWord::kFileName);
  EXPECT_EQ(sync_object(access(), true, nullptr), -EIO);
  std::filesystem::remove(folder_.path() + "/" + OrphanWord::kFileName);
  EXPECT_EQ(sync_object(access(), true, nullptr), 0);
  EXPECT_EQ(words(), sizeof(OrphanWord));
}

// The store has lost bytes that no tier has: what it can make durable is not all of the file.
TEST_F(FlushAlone, WhatOnlyTheLogHasStaysThere) {
  put(BlockNumber{0}, std::string(kPageBytes, 'b'));
  object().log_trouble.store(kLogLost);
  EXPECT_EQ(sync_object(access(), true, nullptr), -EIO);
  object().log_trouble.store(0);
  object().note_trouble(kBytesLost, true);
  EXPECT_EQ(sync_object(access(), true, nullptr), -EIO);
  put(BlockNumber{1}, std::string(kPageBytes, 'c'));
  leave_log_if_alone(access());
  EXPECT_EQ(words(), 0u);
  object().note_trouble(kBytesLost, false);
  EXPECT_EQ(sync_object(access(), true, nullptr), 0);
  EXPECT_EQ(words(), sizeof(OrphanWord));
}

// This service does nothing, and says that it has done what it was asked for.
class AnsweringService final : public testing::AcceptingService {
 public:
  int request_flush(ObjectIndex, bool) override { return 0; }
};

// It is clean, but what the log has of it gets older than what the kernel has.
TEST_F(FlushAlone, AFileThatTheKernelGetsLeavesTheLog) {
  AnsweringService service;
  service.memory = &*memory_;
  ASSERT_EQ(enter_through({actor_, index_, *backing_, service}), 0);
  EXPECT_EQ(words(), sizeof(OrphanWord));
  leave_through(actor_, index_);
}

// Nothing is dirty, which makes nothing durable.
TEST_F(FlushAlone, ACleanFileOfTheLogIsSyncedAllTheSame) {
  AnsweringService service;
  service.memory = &*memory_;
  object().durability.store(Durability::kStore);
  ASSERT_EQ(sync_object({actor_, index_, *backing_, service}, true, nullptr), 0);
  EXPECT_EQ(words(), sizeof(OrphanWord));
  EXPECT_NE(backing_->count(BackingCall::kSync), 0u);
}

// Has died over a question about a file that its log did not need any more. Its successor knows
// nothing of the file.
class RestartedService final : public testing::AcceptingService {
 public:
  int request_flush(ObjectIndex index, bool) override {
    memory->objects().at(index).log_position.store(0);
    return -ENODEV;
  }
};

TEST_F(FailedFlush, ASuccessorThatKnowsNothingOfTheFileKeepsItFromNobody) {
  RestartedService service;
  service.memory = &*memory_;
  const ObjectAccess access{actor_, index_, *backing_, service};
  object().log_position.store(1);
  EXPECT_EQ(sync_object(access, true, nullptr), 0);
  object().log_position.store(1);
  ASSERT_EQ(enter_through(access), 0);
  leave_through(actor_, index_);
}

}  // namespace
}  // namespace cairn
