// SPDX-License-Identifier: Apache-2.0
// Threads read the segments of a log, and the records are those that one reader would find.
#include "service/durable_log/record_stream.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "service/durable_log/durable_log.h"
#include "service/durable_log/log_scan.h"
#include "service/durable_log/testing/power_cut_storage.h"

namespace cairn::durable {
namespace {

// Reads from a file until it is to fail.
class UnreliableFile final : public LogFile {
 public:
  explicit UnreliableFile(LogFile& file) : file_(file) {}
  std::int64_t size() override { return file_.size(); }
  std::int64_t read(std::span<std::byte> out, std::uint64_t offset) override {
    return offset >= fails_from ? -EIO : file_.read(out, offset);
  }
  int write(std::span<const std::byte>, std::uint64_t) override { return -EROFS; }
  int flush() override { return 0; }
  int lock() override { return 0; }
  std::uint64_t fails_from = ~std::uint64_t{0};

 private:
  LogFile& file_;
};

class RecordStreamTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kWrites = 200;

  void SetUp() override {
    auto log = DurableLog::open(disk_.storage(), {.capacity_bytes = 64 * kSegmentBytesMin,
                                                  .segment_bytes = kSegmentBytesMin});
    ASSERT_TRUE(log.is_ok());
    FileIdentity identity;
    identity.key = file_key(1, 2, 3);
    identity.path = "/store/a";
    const auto object = (*log)->add_object(identity, {});
    for (std::size_t turn = 0; turn < kWrites; ++turn) {
      const std::vector<std::byte> bytes(1 + turn * 37 % 9000, static_cast<std::byte>(turn));
      ASSERT_TRUE((*log)->append_data(*object, {turn * 8192, bytes}, {1U << 21, 5}).is_ok());
      ASSERT_TRUE((*log)->append_renamed(*object, "/store/b").is_ok());
    }
    log->reset();
    storage_ = disk_.storage();
    auto superblock = open_superblock(*storage_, SuperblockLock::kNone);
    ASSERT_TRUE(superblock.is_ok());
    log_ = superblock->content.log();
    auto scan = LogScan::open(*storage_, superblock->content);
    ASSERT_TRUE(scan.is_ok());
    scan_ = std::make_unique<LogScan>(std::move(*scan));
    for (const LogSegment& segment : scan_->segments()) {
      files_.push_back(std::make_unique<UnreliableFile>(*segment.file));
      segments_.push_back({files_.back().get(), segment.header.segment});
    }
    ASSERT_GT(segments_.size(), RecordStream::kSegmentsAhead + RecordStream::kReadersMax);
  }

  PowerCutDisk disk_;
  std::unique_ptr<LogStorage> storage_;
  std::unique_ptr<LogScan> scan_;
  std::uint64_t log_ = 0;
  std::vector<std::unique_ptr<UnreliableFile>> files_;
  std::vector<SegmentFile> segments_;
};

TEST_F(RecordStreamTest, RecordsComeInTheOrderOfTheLog) {
  // One segment alone is read without threads.
  for (const std::size_t count : {segments_.size(), std::size_t{1}}) {
    const std::vector<SegmentFile> some(segments_.begin(),
                                        segments_.begin() + static_cast<std::ptrdiff_t>(count));
    RecordStream stream(some, log_, Payloads::kVerified);
    for (const SegmentFile& segment : some) {
      SegmentReader reader(*segment.file, log_, segment.number);
      FoundRecord wanted;
      for (Found found = Found::kRecord; found != Found::kEnd;) {
        found = reader.next(Payloads::kVerified, wanted);
        const RecordStream::Item item = stream.next();
        ASSERT_EQ(item.found, found);
        ASSERT_EQ(item.end, reader.end());
        if (found == Found::kEnd) break;
        ASSERT_EQ(item.record.header, wanted.header);
        ASSERT_EQ(item.record.payload, wanted.payload);
        ASSERT_EQ(item.record.payload_at, wanted.payload_at);
        ASSERT_TRUE(item.record.is_verified);
      }
    }
  }
}

TEST_F(RecordStreamTest, AnErrorComesBehindAllThatWasReadBeforeIt) {
  constexpr std::size_t kBad = 5;
  files_[kBad]->fails_from = kSegmentBytesMin / 2;
  RecordStream stream(segments_, log_, Payloads::kVerified);
  std::size_t ended = 0;
  std::size_t in_bad = 0;
  RecordStream::Item item;
  while ((item = stream.next()).found != Found::kError) {
    if (item.found == Found::kEnd) {
      ++ended;
    } else if (ended == kBad) {
      ++in_bad;
    }
  }
  EXPECT_EQ(stream.error(), EIO);
  EXPECT_EQ(ended, kBad);
  EXPECT_GT(in_bad, 0U);
}

TEST_F(RecordStreamTest, MayEndBeforeTheRecordsDo) {
  for (int taken = 0; taken < 3; ++taken) {
    RecordStream stream(segments_, log_, Payloads::kWhereCheap);
    for (int count = 0; count < taken; ++count) EXPECT_EQ(stream.next().found, Found::kRecord);
  }
}

}  // namespace
}  // namespace cairn::durable
