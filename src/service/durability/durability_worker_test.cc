// SPDX-License-Identifier: Apache-2.0
#include "service/durability/durability_worker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>

#include "base/testing/temporary_folder.h"
#include "frontends/protocol/protocol.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/testing/accepting_service.h"
#include "memory/tiers/testing/test_memory.h"
#include "service/durability/dirty_logging.h"
#include "service/durable_log/testing/power_cut_storage.h"

namespace cairn::node {
namespace {

// A file of level node whose log is on a disk that loses what no flush has covered.
class DurabilityWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = testing::make_memory(testing::memory_only(64 * kBlockBytes));
    actor_ = testing::make_actor(memory_);
    // The log takes no file without a name.
    fd_ = UniqueFd(::open((folder_.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
    StoreStatus status;
    ASSERT_EQ(store_status(fd_.get(), &status), 0);
    object_ = testing::make_object(actor_, status.key);
    record().durability.store(Durability::kNode);
    record().writers.store(1);
    files_.emplace(memory_);
    ASSERT_TRUE(files_->insert(object_, UniqueFd(::dup(fd_.get())), FileRoom(), 1));
    record().set(kObjectHandedOver);
    service_.memory = &memory_;
    backing_.emplace(fd_.get(), O_RDWR);
    const Owner self = memory_.owners().current(ClientSlot::kOfService);
    flusher_.emplace(memory_, *files_, self, FlushOptions{}, [](const std::string&) {});
    open_log();
    logged_.emplace(memory_, self, *log_);
    names_.emplace(memory_, *logged_, *log_);
    logged_->use_names(*names_);
    flusher_->use_log(*logged_);
    storing_.start();
    retirement_.emplace(RetirementParts{memory_, *logged_, *names_, *files_, *flusher_, counts_});
    worker_.emplace(DurabilityParts{memory_, *logged_, *names_, *files_, *flusher_, storing_,
                                    *retirement_, counts_});
    worker_->start("cairn-durable");
  }
  void TearDown() override {
    if (worker_) worker_->stop();
    storing_.stop();
    actor_.drop_leases();
  }

  Object& record() { return memory_.objects().at(object_); }

  void open_log() {
    durable::LogOptions options;
    options.capacity_bytes = 8 << 20;
    options.segment_bytes = 1 << 20;
    auto log = durable::DurableLog::open(disk_.storage(), options);
    ASSERT_TRUE(log.is_ok()) << log.status().message();
    log_ = std::move(log.value());
  }

  void write(std::uint64_t offset, const std::string& text) {
    const ObjectAccess access(actor_, object_, *backing_, service_);
    ASSERT_EQ(write_object(access, offset, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  // What the client gets: 0 or -errno.
  int make_durable() {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    const UniqueFd mine(ends[0]);
    worker_->submit(Asker(std::make_shared<const UniqueFd>(UniqueFd(ends[1]))), object_);
    protocol::Flushed answer;
    EXPECT_EQ(::recv(mine.get(), &answer, sizeof answer, 0), static_cast<ssize_t>(sizeof answer));
    return -answer.error;
  }

  // Nothing but the disk is left.
  bool survives(const std::string& text) {
    disk_.cut_after(0);
    worker_->stop();
    worker_.reset();
    RandomSource random(7);
    disk_.restore_power(random);
    for (const auto& [name, bytes] : disk_.contents()) {
      const auto* begin = reinterpret_cast<const std::byte*>(text.data());
      if (std::search(bytes.begin(), bytes.end(), begin, begin + text.size()) != bytes.end())
        return true;
    }
    return false;
  }

  const cairn::testing::TemporaryFolder folder_{"durability"};
  durable::PowerCutDisk disk_;
  std::unique_ptr<durable::DurableLog> log_;
  NodeMemory memory_;
  Actor actor_;
  UniqueFd fd_;
  ObjectIndex object_{};
  testing::AcceptingService service_;
  std::optional<PosixBacking> backing_;
  std::optional<StoreFiles> files_;
  std::optional<LoggedFiles> logged_;
  std::optional<LoggedNames> names_;
  std::optional<Flusher> flusher_;
  DurabilityCounts counts_;
  RequestWorker storing_;
  std::optional<Retirement> retirement_;
  std::optional<DurabilityWorker> worker_;
};

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
  EXPECT_TRUE(record().is_marked(kMarkStoreOwed));
  EXPECT_EQ(make_durable(), 0);
  EXPECT_EQ(counts_.stored.load(), 1u);
  EXPECT_FALSE(record().is_in_log()) << "a crash would bring the older bytes back";
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
  EXPECT_FALSE(record().is_marked(kMarkStoreOwed));
  write(0, "stored");
  ASSERT_EQ(flush_object(actor_, request).error, 0);
  EXPECT_TRUE(record().is_marked(kMarkStoreOwed));
}

}  // namespace
}  // namespace cairn::node
