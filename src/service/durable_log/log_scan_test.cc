// SPDX-License-Identifier: Apache-2.0
// A small log with every byte flipped, and cut at every length: nothing that was not written is
// ever returned, what was durable is returned or reported as damaged, and the scan ends.
#include "service/durable_log/log_scan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library's name for it
#include <xxhash.h>

#include "service/durable_log/durable_log.h"
#include "service/durable_log/log_check.h"
#include "service/durable_log/testing/power_cut_storage.h"

namespace cairn::durable {
namespace {

struct Scanned {
  std::map<std::uint64_t, RecordHeader> records;
  ScanReport report;
};

Scanned scan(PowerCutDisk& disk) {
  Scanned result;
  auto storage = disk.storage();
  auto superblock = open_superblock(*storage, SuperblockLock::kNone);
  EXPECT_TRUE(superblock.is_ok());
  auto scan = LogScan::open(*storage, superblock->content);
  EXPECT_TRUE(scan.is_ok());
  auto report = scan->run(Payloads::kVerified, [&](const FoundRecord& record, const LogSegment&) {
    EXPECT_TRUE(record.is_verified);
    result.records[raw(record.header.lsn)] = record.header;
  });
  EXPECT_TRUE(report.is_ok());
  result.report = *report;
  return result;
}

// Two files, a few records of each kind, in one segment.
void write_small_log(PowerCutDisk& disk) {
  auto log =
      DurableLog::open(disk.storage(), {.capacity_bytes = 0, .segment_bytes = kSegmentBytesMin});
  ASSERT_TRUE(log.is_ok());
  FileIdentity identity;
  identity.key = file_key(1, 2, 3);
  identity.path = "/store/a";
  auto first = (*log)->add_object(identity, {1, 2});
  identity.key = file_key(1, 3, 3);
  auto second = (*log)->add_object(identity, {1, 2});
  const std::vector<std::byte> bytes(40, std::byte{7});
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE((*log)->append_data(*first, {0, bytes}, {40, 5}).is_ok());
    ASSERT_TRUE((*log)->append_size(*second, {9, 5}).is_ok());
    auto lsn = (*log)->append_renamed(*first, "/store/b");
    ASSERT_TRUE((*log)->commit(*lsn).is_ok());
    ASSERT_TRUE((*log)->commit(*(*log)->begin_storing(*second)).is_ok());
    ASSERT_TRUE((*log)->retire(*second, *lsn, {9, 5}).is_ok());
  }
}

std::size_t used_bytes(const std::vector<std::byte>& segment) {
  std::size_t used = segment.size();
  while (used > 0 && segment[used - 1] == std::byte{0}) --used;
  return used;
}

void expect_honest(const Scanned& whole, const Scanned& hurt) {
  for (const auto& [lsn, header] : hurt.records) {
    const auto written = whole.records.find(lsn);
    ASSERT_NE(written, whole.records.end());
    ASSERT_EQ(header, written->second);
  }
  // What a later record that is left calls durable is there or reported.
  std::uint64_t durable = 0;
  for (const auto& [lsn, header] : hurt.records) durable = std::max(durable, raw(header.durable));
  for (const auto& [lsn, header] : whole.records) {
    if (lsn > durable || hurt.records.contains(lsn)) continue;
    bool is_reported = false;
    for (const Damage& damage : hurt.report.damage) {
      is_reported |= lsn >= raw(damage.first) && lsn <= raw(damage.last);
    }
    ASSERT_TRUE(is_reported) << "record " << lsn << " of " << durable << " is missing";
  }
}

TEST(LogScan, EveryFlippedByteIsFound) {
  PowerCutDisk disk;
  write_small_log(disk);
  const Scanned whole = scan(disk);
  ASSERT_TRUE(whole.report.damage.empty());
  ASSERT_TRUE(whole.report.is_clean_end);
  ASSERT_GT(whole.records.size(), 8U);
  const auto contents = disk.contents();
  const std::vector<std::byte>& segment = contents.at("log.1");
  const std::size_t used = used_bytes(segment);
  for (std::size_t at = 0; at < used; ++at) {
    std::vector<std::byte> hurt = segment;
    hurt[at] ^= std::byte{0x41};
    disk.set_content("log.1", hurt);
    SCOPED_TRACE("byte " + std::to_string(at));
    const Scanned found = scan(disk);
    expect_honest(whole, found);
    // Only the filling behind a payload has no sum.
    if (found.records.size() == whole.records.size()) continue;
    ASSERT_LT(found.records.size(), whole.records.size());
    if (HasFatalFailure()) return;
  }
}

TEST(LogScan, EveryTruncationGivesABeginningOfTheLog) {
  PowerCutDisk disk;
  write_small_log(disk);
  const Scanned whole = scan(disk);
  const auto contents = disk.contents();
  const std::vector<std::byte>& segment = contents.at("log.1");
  const std::size_t used = used_bytes(segment);
  std::size_t records = 0;
  for (std::size_t length = 0; length <= used + 8; ++length) {
    disk.set_content("log.1", {segment.begin(), segment.begin() + static_cast<long>(length)});
    const Scanned found = scan(disk);
    expect_honest(whole, found);
    ASSERT_TRUE(found.report.damage.empty()) << "at " << length;
    ASSERT_GE(found.records.size(), records);
    records = found.records.size();
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(records, whole.records.size());
}

TEST(LogCheck, MakesALostSuperblockAgain) {
  PowerCutDisk disk;
  write_small_log(disk);
  const Scanned whole = scan(disk);
  disk.set_content("superblock", std::vector<std::byte>(64, std::byte{1}));
  auto storage = disk.storage();
  auto looked = check_log(*storage, CheckWhat::kLook);
  ASSERT_TRUE(looked.is_ok()) << looked.status().message();
  EXPECT_EQ(looked->problems.size(), 1U);
  EXPECT_FALSE(DurableLog::open(disk.storage(), {}).is_ok());
  auto repaired = check_log(*storage, CheckWhat::kRepair);
  ASSERT_TRUE(repaired.is_ok());
  EXPECT_TRUE(repaired->problems.empty());
  EXPECT_EQ(repaired->repaired.size(), 1U);
  EXPECT_EQ(scan(disk).records, whole.records);
}

TEST(LogCheck, AnotherVersionIsRefusedWithWhatToDo) {
  PowerCutDisk disk;
  write_small_log(disk);
  auto superblock = disk.contents().at("superblock");
  superblock[8] = std::byte{kLogVersion + 1};
  disk.set_content("superblock", superblock);
  auto opened = DurableLog::open(disk.storage(), {});
  ASSERT_FALSE(opened.is_ok());
  EXPECT_EQ(opened.status().code(), StatusCode::kIncompatible);
  EXPECT_NE(opened.status().message().find("cairn recover"), std::string::npos);
}

TEST(LogCheck, AnEarlierVersionIsReadAndWrittenAnew) {
  PowerCutDisk disk;
  write_small_log(disk);
  const auto records = scan(disk).records;
  auto superblock = disk.contents().at("superblock");
  superblock[8] = std::byte{kLogVersionFirst};
  const std::size_t summed = superblock.size() - sizeof(std::uint64_t);
  const std::uint64_t sum = XXH3_64bits(superblock.data(), summed);
  std::memcpy(superblock.data() + summed, &sum, sizeof sum);
  disk.set_content("superblock", superblock);
  EXPECT_EQ(scan(disk).records, records);
  ASSERT_TRUE(DurableLog::open(disk.storage(), {}).is_ok());
  EXPECT_EQ(disk.contents().at("superblock")[8], std::byte{kLogVersion});
  EXPECT_GE(scan(disk).records.size(), records.size());
}

TEST(LogCheck, CutsATornEndAndLeavesWhatCounts) {
  PowerCutDisk disk;
  write_small_log(disk);
  auto segment = disk.contents().at("log.1");
  const Scanned whole = scan(disk);
  // The clean end and the statement before it were durable to nobody's knowledge.
  const std::size_t used = used_bytes(segment);
  segment[used - 2 * kRecordHeaderBytes] ^= std::byte{1};
  disk.set_content("log.1", segment);
  auto storage = disk.storage();
  auto looked = check_log(*storage, CheckWhat::kLook);
  ASSERT_TRUE(looked.is_ok());
  EXPECT_EQ(looked->problems.size(), 1U);
  auto repaired = check_log(*storage, CheckWhat::kRepair);
  ASSERT_TRUE(repaired.is_ok());
  EXPECT_EQ(repaired->repaired.size(), 1U);
  auto again = check_log(*storage, CheckWhat::kLook);
  ASSERT_TRUE(again.is_ok());
  EXPECT_TRUE(again->problems.empty());
  EXPECT_EQ(again->scan.records + 2, whole.report.records);
}

// Appends `count` records of one size that say `mark`; nothing is committed.
void append_alike(DurableLog& log, unsigned count, std::uint64_t mark) {
  FileIdentity identity;
  identity.key = file_key(1, 2, 3);
  identity.path = "/store/a";
  auto object = log.add_object(identity, {});
  const std::vector<std::byte> bytes(4000, std::byte{7});
  for (unsigned turn = 0; turn < count; ++turn) {
    ASSERT_TRUE(log.append_data(*object, {mark, bytes}, {}).is_ok());
  }
}

// The power goes when a segment was begun and nothing was flushed: its first bytes are lost, the
// records behind them are whole. The next node writes over the first of these, at the same places
// and with the same LSNs, so the rest would follow as if it were its own.
TEST(LogScan, RecordsOfASegmentWhoseHeaderWasLostDoNotComeBack) {
  constexpr std::uint64_t kLost = 111, kNew = 222;
  constexpr LogOptions kThree{.capacity_bytes = 3 * kSegmentBytesMin,
                              .segment_bytes = kSegmentBytesMin};
  PowerCutDisk disk;
  RandomSource random(1);
  auto log = DurableLog::open(disk.storage(), kThree);
  ASSERT_TRUE(log.is_ok());
  append_alike(**log, 28, kLost);
  ASSERT_EQ((*log)->figures().segments, 2U);
  auto contents = disk.contents();
  disk.cut_after(0);
  log->reset();
  disk.restore_power(random);
  ASSERT_TRUE(contents.contains("log.1") && contents.contains("log.2"));
  std::ranges::fill(std::span(contents["log.2"]).first(kSegmentBegin), std::byte{0});
  for (const auto& [name, bytes] : contents) disk.set_content(name, bytes);

  log = DurableLog::open(disk.storage(), kThree);
  ASSERT_TRUE(log.is_ok());
  const Lsn before = (*log)->durable();
  append_alike(**log, 3, kNew);
  const Lsn last = (*log)->appended();
  disk.cut_after(0);
  contents = disk.contents();
  log->reset();
  disk.restore_power(random);
  for (const auto& [name, bytes] : contents) disk.set_content(name, bytes);
  const Scanned found = scan(disk);
  EXPECT_EQ(found.records.rbegin()->first, raw(last));
  for (const auto& [lsn, header] : found.records) {
    if (header.kind != RecordKind::kData) continue;
    EXPECT_EQ(header.words[0], lsn > raw(before) ? kNew : kLost) << "record " << lsn;
  }
}

}  // namespace
}  // namespace cairn::durable
