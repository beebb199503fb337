// SPDX-License-Identifier: Apache-2.0
#include "service/durability/durability_worker.h"

#include <algorithm>
#include <chrono>
#include <string>

#include "service/durability/dirty_logging.h"
#include "service/durability/testing/logged_node.h"

namespace cairn::node {
namespace {

using DurabilityWorkerTest = testing::LoggedNode;

TEST_F(DurabilityWorkerTest, AnAnswerComesAfterTheFlushOfTheLog) {
  for (int round = 0; round < 20; ++round) {
    write(static_cast<std::uint64_t>(round) * kPageBytes, "record " + std::to_string(round));
    ASSERT_EQ(make_durable(), 0);
  }
  EXPECT_EQ(counts_.logged.load(), 20u);
  EXPECT_TRUE(survives("record 19"));
}

TEST_F(DurabilityWorkerTest, OnlyPagesThatChangedAreLogged) {
  write(0, std::string(kBlockBytes, 'a'));
  ASSERT_EQ(make_durable(), 0);
  const std::uint64_t before = log_->figures().appended_bytes;
  write(3 * kPageBytes, std::string(kPageBytes, 'b'));
  write(8 * kPageBytes, std::string(kPageBytes, 'a'));  // as it was
  ASSERT_EQ(make_durable(), 0);
  const std::uint64_t appended = log_->figures().appended_bytes - before;
  EXPECT_GE(appended, kPageBytes);
  EXPECT_LE(appended, 2 * kPageBytes);
}

// Recovery looks at each record before it restores the first one.
TEST_F(DurabilityWorkerTest, NeighboursThatHaveChangedAreOneRecord) {
  constexpr std::size_t kBlocks = 11;
  // A page alone, a block alone, two runs of four, one of three, and its neighbour's first page.
  write(60 * kBlockBytes, "alone");
  write(40 * kBlockBytes, std::string(kBlockBytes, 'm'));
  std::string text;
  for (std::size_t page = 0; page < kBlocks * kBlockBytes / kPageBytes + 1; ++page)
    text += std::string(kPageBytes, static_cast<char>('0' + page % 70));
  write(0, text);
  ASSERT_EQ(make_durable(), 0);
  // An object's statement for each of its segments, and little else.
  EXPECT_LE(log_->figures().appended_records, 12u);
  // What has one record is logged again by the page.
  const std::uint64_t before = log_->figures().appended_bytes;
  write(2 * kBlockBytes, "x");
  ASSERT_EQ(make_durable(), 0);
  EXPECT_LE(log_->figures().appended_bytes - before, 2 * kPageBytes);
  EXPECT_TRUE(survives(text.substr(0, 4 * kBlockBytes)));
  EXPECT_TRUE(survives(text.substr(4 * kBlockBytes, 4 * kBlockBytes)));
  EXPECT_TRUE(survives(text.substr(8 * kBlockBytes, 3 * kBlockBytes)));
  EXPECT_TRUE(survives(text.substr(11 * kBlockBytes)));
}

// Whether the log had taken a record before its flush failed decides what the caller hears: after a
// crash such a record might come back, and be older than what the store has by then.
TEST_F(DurabilityWorkerTest, WhatALogThatFailsDoesNotTakeGoesToTheStore) {
  disk_.fail_flushes(EIO);
  write(0, "to the store");
  const int error = make_durable();
  EXPECT_EQ(error, record().is_in_log() ? -EIO : 0);
  EXPECT_EQ(counts_.stored.load(), 1u);
  std::string stored(12, ' ');
  EXPECT_EQ(::pread(fd_.get(), stored.data(), stored.size(), 0), 12);
  EXPECT_EQ(stored, "to the store");
}

// The threads of checkpoints and of keeping must end with the service.
TEST_F(DurabilityWorkerTest, ARoundDoesNotWaitForEverForTheDeviceOfTheLog) {
  write(0, "dirty");
  disk_.script().hang(durable::PowerCutDisk::kFlush);
  LoggingPace pace;
  pace.commit_max = std::chrono::milliseconds(50);
  const auto begin_round = [&] {
    return std::async(std::launch::async,
                      [&] { return log_dirty(memory_, *logged_, *files_, pace); });
  };
  std::future<DirtyLogging> round = begin_round();
  EXPECT_EQ(round.wait_for(std::chrono::seconds(5)), std::future_status::ready);
  disk_.script().heal();
  const DirtyLogging in_vain = round.get();
  EXPECT_EQ(in_vain.logged, 0u);
  EXPECT_EQ(in_vain.skipped, 1u);
  pace.commit_max = kCommitMax;
  EXPECT_EQ(begin_round().get().logged, 1u) << "the next one finds that it answers";
}

TEST_F(DurabilityWorkerTest, AStoredFileLeavesTheLog) {
  write(0, "soon stored");
  ASSERT_EQ(make_durable(), 0);
  EXPECT_TRUE(record().is_in_log());
  EXPECT_EQ(log_->figures().objects, 1u);
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_FALSE(record().is_in_log());
  EXPECT_EQ(log_->figures().objects, 0u);
}

TEST_F(DurabilityWorkerTest, ARemovedFileLeavesTheLogWhenItsStoreHasLostIt) {
  write(0, "gone");
  ASSERT_EQ(make_durable(), 0);
  ASSERT_EQ(logged_->log_removed(object_).outcome, LogAttempt::Outcome::kLogged);
  record().set(kObjectUnlinked);
  EXPECT_EQ(log_->removed().size(), 1u);
  EXPECT_EQ(log_->figures().objects, 1u);
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_EQ(log_->figures().objects, 0u);
  EXPECT_TRUE(log_->removed().empty());
}

// The process that had said so could not remove it, or died before it did.
TEST_F(DurabilityWorkerTest, AFileThatWasNotRemovedAfterAllIsStoredFirst) {
  write(0, "here");
  ASSERT_EQ(make_durable(), 0);
  ASSERT_EQ(logged_->log_removed(object_).outcome, LogAttempt::Outcome::kLogged);
  EXPECT_EQ(retirement_->retire_all(0), 0);
  EXPECT_EQ(log_->figures().objects, 0u);
  std::string stored(4, ' ');
  EXPECT_EQ(::pread(fd_.get(), stored.data(), stored.size(), 0), 4);
  EXPECT_EQ(stored, "here");
}

// A page that has its old bytes again is still to be logged: the records of before are void.
TEST_F(DurabilityWorkerTest, WhatWasRetiredIsLoggedAgain) {
  write(0, "first");
  ASSERT_EQ(make_durable(), 0);
  ASSERT_EQ(retirement_->retire_all(0), 0);
  write(0, "other");
  write(0, "first");
  const std::uint64_t before = log_->figures().appended_bytes;
  ASSERT_EQ(make_durable(), 0);
  EXPECT_TRUE(record().is_in_log());
  EXPECT_GT(log_->figures().appended_bytes, before);
}

TEST_F(DurabilityWorkerTest, BytesThatTheStoreGotPastTheLogAreMadeDurableThere) {
  write(0, "logged");
  ASSERT_EQ(make_durable(), 0);
  write(0, "stored");
  FlushRequest request(object_, *backing_);
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_TRUE(record().is_store_owed());
  EXPECT_EQ(make_durable(), 0);
  EXPECT_EQ(counts_.stored.load(), 1u);
  EXPECT_FALSE(record().is_in_log()) << "a crash would bring the older bytes back";
}

// A file that was there before is owed to the store from its open on: a program that changes it
// between its fsyncs pays once, not at each of them.
TEST_F(DurabilityWorkerTest, AnFsyncOfTheStorePaysForWhatItHasJustStored) {
  record().durability.store(Durability::kNode);
  record().note_store_owed();
  write(0, "first");
  ASSERT_EQ(make_durable(), 0);
  EXPECT_EQ(counts_.stored.load(), 1u);
  EXPECT_FALSE(record().is_store_owed());
  write(0, "second");
  ASSERT_EQ(make_durable(), 0);
  EXPECT_EQ(counts_.stored.load(), 1u) << "the log can take it now";
  EXPECT_TRUE(record().is_in_log());
}

// The store has not said yet that it has them: another fsync has to ask the store as well, and so
// has that of a successor, should this service die.
TEST_F(DurabilityWorkerTest, WhatIsOwedStaysOwedWhileAnFsyncIsUnderWay) {
  write(0, "logged");
  ASSERT_EQ(make_durable(), 0);
  write(0, "stored");
  FlushRequest request(object_, *backing_);
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  const LogMark first = logged_->begin_storing(object_);
  EXPECT_NE(logged_->log_changes(object_, fd_.get(), LoggedFiles::Why::kAsked).outcome,
            LogAttempt::Outcome::kLogged);
  write(0, "stored meanwhile");
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_EQ(logged_->end_storing(object_, first), 0);
  EXPECT_TRUE(record().is_store_owed()) << "that fsync has not paid for what came after it began";
  const LogMark second = logged_->begin_storing(object_);
  EXPECT_EQ(logged_->end_storing(object_, second), 0);
  EXPECT_FALSE(record().is_store_owed());
}

// Recovery after the death of the node alone would else put the old bytes over the new ones.
TEST_F(DurabilityWorkerTest, NewerBytesOfWhatTheLogHasAreLoggedBeforeTheyAreStored) {
  write(0, "first");
  ASSERT_EQ(make_durable(), 0);
  // An fsync would go to the store: it is not for that that they are logged.
  record().note_store_owed();
  write(0, "newer");
  write(5 * kBlockBytes, "of which the log has nothing");
  const std::uint64_t before = log_->figures().appended_bytes;
  ASSERT_EQ(flusher_->flush_now(object_, false), 0);
  EXPECT_EQ(log_->figures().appended_bytes - before, kPageBytes)
      << "the first block, not the other";
  EXPECT_EQ(record().dirty_blocks.load(), 0u);
}

// Also where it has changed since the file was looked at.
TEST_F(DurabilityWorkerTest, ABlockThatHasChangedSinceItWasLoggedIsLoggedAsItIsStored) {
  write(0, "first");
  ASSERT_EQ(make_durable(), 0);
  write(0, "newer");
  write(5 * kBlockBytes, "of which the log has nothing");
  FlushRequest request(object_, *backing_);
  request.witness = &*logged_;
  request.log_comes_first = true;
  const std::uint64_t before = log_->figures().appended_bytes;
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_EQ(log_->figures().appended_bytes - before, kPageBytes) << "the page alone";
  EXPECT_EQ(record().dirty_blocks.load(), 0u);
  write(0, "newer");
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_EQ(log_->figures().appended_bytes - before, kPageBytes) << "the log has it";
}

// The log knows it by its bytes, also when it was written again or has moved to another tier.
TEST_F(DurabilityWorkerTest, ABlockThatTheLogHasIsNotOwedToTheStore) {
  write(0, "logged");
  ASSERT_EQ(make_durable(), 0);
  write(0, "logged");
  FlushRequest request(object_, *backing_);
  request.witness = &*logged_;
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_EQ(record().dirty_blocks.load(), 0u);
  EXPECT_FALSE(record().is_store_owed());
  write(0, "stored");
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_TRUE(record().is_store_owed());
}

}  // namespace
}  // namespace cairn::node
