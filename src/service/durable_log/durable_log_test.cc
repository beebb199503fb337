// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/durable_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "base/testing/temporary_folder.h"
#include "base/testing/without_threads.h"
#include "service/durable_log/directory_storage.h"
#include "service/durable_log/log_scan.h"

namespace cairn::durable {
namespace {

class Tier : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = (std::filesystem::temp_directory_path() / "durable_log.XXXXXX").string();
    ASSERT_NE(::mkdtemp(made.data()), nullptr);
    path_ = made;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  std::unique_ptr<DurableLog> open(std::uint64_t segments = 16) {
    auto log = DurableLog::open(
        path_, {.capacity_bytes = segments * kSegmentBytesMin, .segment_bytes = kSegmentBytesMin});
    EXPECT_TRUE(log.is_ok()) << log.status().message();
    return log ? std::move(*log) : nullptr;
  }

  static FileIdentity file(std::uint64_t inode) {
    FileIdentity identity;
    identity.key = file_key(1, inode, 7);
    identity.path = "/store/file" + std::to_string(inode);
    return identity;
  }

  static std::vector<std::byte> filled(std::size_t bytes, unsigned value) {
    return std::vector<std::byte>(bytes, static_cast<std::byte>(value));
  }

  std::vector<RecordHeader> records(ScanReport* report = nullptr) {
    auto storage = open_directory_storage(path_, FolderWanted::kExisting);
    EXPECT_TRUE(storage.is_ok());
    auto superblock = open_superblock(**storage, SuperblockLock::kNone);
    EXPECT_TRUE(superblock.is_ok());
    auto scan = LogScan::open(**storage, superblock->content);
    EXPECT_TRUE(scan.is_ok());
    std::vector<RecordHeader> found;
    auto result = scan->run(Payloads::kVerified, [&](const FoundRecord& record, const LogSegment&) {
      found.push_back(record.header);
    });
    EXPECT_TRUE(result.is_ok());
    if (report != nullptr) *report = *result;
    return found;
  }

  // Bytes of payloads that a scan verifies because no record says that they are durable.
  std::uint64_t undeclared_bytes() {
    auto storage = open_directory_storage(path_, FolderWanted::kExisting);
    auto superblock = open_superblock(**storage, SuperblockLock::kNone);
    auto scan = LogScan::open(**storage, superblock->content);
    std::uint64_t bytes = 0;
    auto result =
        scan->run(Payloads::kWhereCheap, [&](const FoundRecord& record, const LogSegment&) {
          if (record.header.kind == RecordKind::kData && record.is_verified)
            bytes += record.header.payload_bytes;
        });
    EXPECT_TRUE(result.is_ok());
    return bytes;
  }

  std::string path_;
};

TEST_F(Tier, WhatIsCommittedIsThereForTheNextNode) {
  auto log = open();
  auto object = log->add_object(file(1), {10, 20});
  auto lsn = log->append_data(*object, {4096, filled(100, 3)}, {5000, 77});
  ASSERT_TRUE(lsn.is_ok());
  ASSERT_TRUE(log->commit(*lsn).is_ok());
  EXPECT_GE(log->durable(), *lsn);
  const auto found = records();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, RecordKind::kObject);
  EXPECT_EQ(found[1].kind, RecordKind::kData);
  EXPECT_EQ(found[1].words[0], 4096U);
  EXPECT_EQ(found[1].words[1], 5000U);
}

// The next file with the number of its inode would be taken for it.
TEST_F(Tier, ARemovedFileWithoutATimeOfBirthIsVoidAtOnce) {
  auto log = open();
  for (const std::int64_t birth : {0, 7}) {
    FileIdentity identity = file(5);
    identity.key = file_key(1, 5, birth);
    auto object = log->add_object(identity, {});
    ASSERT_TRUE(log->append_data(*object, {0, filled(100, 3)}, {100, 77}).is_ok());
    auto removed = log->append_removed(*object);
    ASSERT_TRUE(log->commit(*removed).is_ok());
    EXPECT_EQ(records().back().kind, RecordKind::kRemoved);
    EXPECT_EQ(records().back().words[2] != 0, birth != 0);
    EXPECT_EQ(log->removed().size(), birth == 0 ? 0U : 1U);
  }
}

// The opening of a log verifies what nobody has declared durable: all of a large fsync otherwise.
TEST_F(Tier, ALargeCommitIsDeclaredDurableAtOnce) {
  constexpr std::size_t kPiece = 256U << 10;
  constexpr unsigned kPieces = 300;
  auto log = std::move(*DurableLog::open(path_, {.capacity_bytes = 256U << 20}));
  auto object = log->add_object(file(1), {});
  Lsn last = Lsn::kNone;
  for (unsigned piece = 0; piece < kPieces; ++piece) {
    const std::uint64_t end = (piece + 1) * kPiece;
    auto lsn = log->append_data(*object, {end - kPiece, filled(kPiece, piece)}, {end, 77});
    ASSERT_TRUE(lsn.is_ok()) << lsn.status().message();
    last = *lsn;
  }
  EXPECT_GT(undeclared_bytes(), 0U);
  ASSERT_TRUE(log->commit(last).is_ok());
  EXPECT_EQ(undeclared_bytes(), 0U);
}

// Else damage to it would look like the end of what nobody was told of.
TEST_F(Tier, ASmallCommitIsDeclaredDurableSoon) {
  auto log = open();
  auto object = log->add_object(file(1), {});
  auto lsn = log->append_data(*object, {0, filled(100, 3)}, {100, 77});
  ASSERT_TRUE(log->commit(*lsn).is_ok());
  EXPECT_LT(records().back().durable, *lsn);
  for (int look = 0; look < 100 && records().back().durable < *lsn; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(records().back().durable, *lsn);
  const std::size_t count = records().size();
  std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  EXPECT_EQ(records().size(), count) << "the word itself needs no other";
  EXPECT_EQ(log->durable(), log->appended());
}

TEST_F(Tier, ManyThreadsCommitWithFewFlushes) {
  auto log = open(64);
  constexpr int kThreads = 8, kEach = 20;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      auto object = log->add_object(file(static_cast<std::uint64_t>(thread) + 1), {});
      for (int turn = 0; turn < kEach; ++turn) {
        auto lsn = log->append_data(*object, {0, filled(4096, 1)}, {4096, turn});
        ASSERT_TRUE(lsn.is_ok()) << lsn.status().message();
        ASSERT_TRUE(log->commit(*lsn).is_ok());
        ASSERT_GE(log->durable(), *lsn);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(log->figures().flushes, log->figures().commits);
  EXPECT_TRUE(log->close().is_ok());
  std::map<std::uint64_t, int> data;
  ScanReport report;
  for (const RecordHeader& header : records(&report)) {
    if (header.kind == RecordKind::kData) ++data[raw(header.object)];
  }
  EXPECT_TRUE(report.is_clean_end);
  EXPECT_TRUE(report.damage.empty());
  ASSERT_EQ(data.size(), static_cast<std::size_t>(kThreads));
  for (const auto& entry : data) EXPECT_EQ(entry.second, kEach);
}

TEST_F(Tier, NothingComesBehindTheCleanEnd) {
  auto log = std::move(*DurableLog::open(path_, {.capacity_bytes = 256U << 20}));
  auto object = log->add_object(file(1), {});
  constexpr std::size_t kPart = std::size_t{1} << 20;
  // So much that the flush of it is declared durable at once.
  for (std::uint64_t part = 0; part < 80; ++part) {
    ASSERT_TRUE(log->append_data(*object, {part * kPart, filled(kPart, 1)}, {(part + 1) * kPart, 1})
                    .is_ok());
  }
  EXPECT_TRUE(log->close().is_ok());
  ScanReport report;
  (void)records(&report);
  EXPECT_TRUE(report.is_clean_end);
}

TEST_F(Tier, ASecondNodeIsRefused) {
  auto log = open();
  auto second = DurableLog::open(path_, {});
  ASSERT_FALSE(second.is_ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
}

TEST_F(Tier, AFullLogTakesAgainWhatComesAfterRetiring) {
  auto log = open(4);
  auto object = log->add_object(file(1), {});
  int pressed = 0;
  log->on_pressure([&] { ++pressed; });
  Lsn last = Lsn::kNone;
  Status full;
  for (int turn = 0; turn < 100 && full.is_ok(); ++turn) {
    auto lsn = log->append_data(*object, {0, filled(8192, 1)}, {8192, turn});
    if (lsn)
      last = *lsn;
    else
      full = lsn.status();
  }
  EXPECT_EQ(full.code(), StatusCode::kExhausted);
  EXPECT_EQ(full.error_number(), ENOSPC);
  EXPECT_GE(pressed, 1);
  ASSERT_EQ(log->pressure().size(), 1U);
  ASSERT_TRUE(log->commit(*log->begin_storing(*object)).is_ok());
  ASSERT_TRUE(log->retire(*object, last, {8192, 5}).is_ok());
  EXPECT_TRUE(log->pressure().empty());
  ASSERT_TRUE(log->commit(log->appended()).is_ok());
  for (int turn = 0; turn < 10; ++turn) {
    EXPECT_TRUE(log->append_data(*object, {0, filled(8192, 2)}, {8192, turn}).is_ok());
  }
}

TEST_F(Tier, WhatIsNotRetiredStaysOverManyNodes) {
  for (int node = 0; node < 5; ++node) {
    auto log = open();
    EXPECT_EQ(log->leftovers(), node == 0 ? 0U : 1U);
    auto object = log->add_object(file(1), {});
    auto lsn = log->append_data(*object, {static_cast<std::uint64_t>(node), filled(10, 1)}, {});
    ASSERT_TRUE(log->commit(*lsn).is_ok());
  }
  auto log = open();
  auto object = log->add_object(file(1), {});
  ASSERT_TRUE(log->retire(*object, log->appended(), {}).is_ok());
  ASSERT_TRUE(log->close().is_ok());
  log.reset();
  EXPECT_EQ(open()->leftovers(), 0U);
}

// Two stores of it may end one after the other.
TEST_F(Tier, AFileOfANodeBeforeKeepsItsNumberUntilItIsForgotten) {
  {
    auto log = open();
    auto object = log->add_object(file(1), {});
    ASSERT_TRUE(log->commit(*log->append_data(*object, {0, filled(100, 3)}, {100, 5})).is_ok());
  }
  auto log = open();
  const LogObject object = log->hold(file(1).key);
  ASSERT_NE(object, LogObject::kNone);
  EXPECT_EQ(log->hold(file(2).key), LogObject::kNone);
  for (int store = 0; store < 2; ++store) {
    ASSERT_TRUE(log->begin_storing(object).is_ok());
    ASSERT_TRUE(log->retire(object, log->appended(), {100, 5}).is_ok()) << store;
  }
  EXPECT_EQ(log->hold(file(1).key), object);
  log->forget(object);
  EXPECT_EQ(log->hold(file(1).key), LogObject::kNone);
}

TEST(DurableLog, ALimitOfThreadsIsAnErrorThatSaysSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody whom limits concern";
  const cairn::testing::TemporaryFolder folder("log");
  ASSERT_EQ(::chown(folder.path().c_str(), cairn::testing::kNobody, cairn::testing::kNobody), 0);
  const int outcome = cairn::testing::run_without_threads([&] {
    const auto log = DurableLog::open(folder.path(), {.capacity_bytes = 64U << 20});
    if (log) return 1;
    return log.status().message().find("cannot start a thread") == std::string::npos ? 2 : 0;
  });
  EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace cairn::durable
