// SPDX-License-Identifier: Apache-2.0
// Random histories on a disk whose power is cut at a random operation. After each cut: everything
// that was committed and not retired is there, nothing torn is returned, nothing that was never
// written appears, and the log can be used again.
//
// CAIRN_POWER_CUTS sets the number of cuts, CAIRN_SEED the first seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "service/durable_log/durable_log.h"
#include "service/durable_log/log_scan.h"
#include "service/durable_log/testing/power_cut_storage.h"

namespace cairn::durable {
namespace {

#ifdef CAIRN_TSAN
constexpr std::uint64_t kPowerCuts = 30;  // for its threads: what a cut leaves, the others look at
#else
constexpr std::uint64_t kPowerCuts = 300;
#endif
constexpr std::uint64_t kFiles = 5;
constexpr LogOptions kSmall{.capacity_bytes = 5 * kSegmentBytesMin,
                            .segment_bytes = kSegmentBytesMin};

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// What one record was meant to say.
struct Said {
  RecordKind kind = RecordKind::kData;
  std::uint64_t file = 0;
  std::array<std::uint64_t, 3> words{};
  std::vector<std::byte> payload;
  bool is_needed = true;  // nobody said that it is stored or void
};

class History {
 public:
  explicit History(std::uint64_t seed) : random_(seed) {}

  void run_until_cut() {
    auto log = DurableLog::open(disk_.storage(), kSmall);
    if (!log) {
      ASSERT_TRUE(disk_.is_off() || may_fail_) << log.status().message();
      return;
    }
    for (std::uint64_t file = 0; file < kFiles; ++file) {
      objects_[file] = *(*log)->add_object(identity(file), {});
    }
    // A log that has failed takes nothing more.
    for (unsigned steps = 0; !disk_.is_off() && steps < 5000; ++steps) step(**log);
    acknowledged_ = std::max(acknowledged_, (*log)->durable());
  }

  void cut_in(std::uint32_t operations) { disk_.cut_after(random_.below(operations)); }

  // Before that a write is refused or torn, or a flush fails, once or for a while.
  void fail_in(std::uint32_t operations) {
    const testing::Calls calls{
        disk_.script().count(PowerCutDisk::kWrite) + random_.below(operations),
        1 + random_.below(3)};
    const testing::Calls flushes{
        disk_.script().count(PowerCutDisk::kFlush) + 1 + random_.below(operations / 8), 1};
    may_fail_ = true;
    switch (random_.below(3)) {
      case 0:
        return disk_.script().fail(PowerCutDisk::kWrite, ENOSPC, calls);
      case 1:
        return disk_.script().tear(PowerCutDisk::kWrite, random_.below(2000), EIO, calls);
      default:
        return disk_.script().fail(PowerCutDisk::kFlush, EIO, flushes);
    }
  }

  void check_after_cut() {
    disk_.script().heal();
    disk_.restore_power(random_);
    auto storage = disk_.storage();
    auto superblock = open_superblock(*storage, SuperblockLock::kNone);
    if (!superblock) {
      ASSERT_EQ(superblock.status().code(), StatusCode::kNotFound) << "a torn superblock";
      ASSERT_TRUE(said_.empty());
      return;
    }
    auto scan = LogScan::open(*storage, superblock->content);
    ASSERT_TRUE(scan.is_ok());
    std::map<std::uint64_t, RecordHeader> found;
    std::map<std::uint64_t, std::uint64_t> files;
    std::uint64_t last = 0;
    auto report = scan->run(Payloads::kVerified, [&](const FoundRecord& record, const LogSegment&) {
      ASSERT_GT(raw(record.header.lsn), last);
      last = raw(record.header.lsn);
      if (record.header.kind == RecordKind::kObject) {
        const auto statement = decode_object(record.header, record.payload);
        ASSERT_TRUE(statement.has_value());
        files[raw(record.header.object)] = statement->identity.key.id.inode;
      }
      found[last] = record.header;
      check_record(superblock->content.log(), record, files);
    });
    ASSERT_TRUE(report.is_ok());
    ASSERT_TRUE(report->damage.empty())
        << raw(report->damage[0].first) << " to " << raw(report->damage[0].last) << " in "
        << report->damage[0].segment << ", acknowledged " << raw(acknowledged_);
    for (const auto& [lsn, said] : said_) {
      if (lsn > raw(acknowledged_) || !said.is_needed) continue;
      ASSERT_TRUE(found.contains(lsn)) << "record " << lsn << " is lost; acknowledged "
                                       << raw(acknowledged_) << ", the log ends at " << last;
    }
    // Records lost with the power were never said.
    std::erase_if(said_, [&](const auto& entry) { return entry.first > last; });
    std::erase_if(under_way_, [&](std::uint64_t lsn) { return lsn > last; });
    acknowledged_ = static_cast<Lsn>(last);
  }

 private:
  static FileIdentity identity(std::uint64_t file) {
    FileIdentity identity;
    identity.key = file_key(1, file + 1, 5);
    identity.path = "/store/" + std::to_string(file);
    return identity;
  }

  void check_record(std::uint64_t log, const FoundRecord& record,
                    const std::map<std::uint64_t, std::uint64_t>& files) {
    const RecordHeader& header = record.header;
    ASSERT_TRUE(record.is_verified);
    const auto said = said_.find(raw(header.lsn));
    if (header.kind != RecordKind::kData && header.kind != RecordKind::kSize) return;
    // A record whose write met the end of the power may be whole, though its append failed.
    if (said == said_.end() && header.lsn > acknowledged_) under_way_.insert(raw(header.lsn));
    if (under_way_.contains(raw(header.lsn))) return;
    ASSERT_NE(said, said_.end()) << "nobody wrote record " << raw(header.lsn);
    ASSERT_EQ(header.kind, said->second.kind);
    ASSERT_EQ(header.words, said->second.words);
    ASSERT_EQ(files.at(raw(header.object)), said->second.file + 1);
    ASSERT_EQ(header.payload_sum, payload_checksum(log, said->second.payload));
  }

  void step(DurableLog& log) {
    const std::uint64_t file = random_.below(kFiles);
    const LogObject object = objects_[file];
    const auto time = static_cast<std::int64_t>(random_.next() >> 8);
    const FileState state{random_.next() >> 40, time};
    switch (random_.below(10)) {
      case 0:
        return commit(log);
      case 1:
        return store(log, object, file, state);
      case 2:
        if (auto lsn = log.append_size(object, state)) note(*lsn, RecordKind::kSize, file, state);
        return;
      case 3:
        // A statement that met the end of the power may be there, though its append failed.
        if (log.append_removed(object).is_ok() || is_doubtful()) settle(file, raw(log.appended()));
        return;
      default:
        break;
    }
    std::vector<std::byte> bytes(1 + random_.below(random_.below(3) == 0 ? 9000 : 300));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.next());
    const std::uint64_t offset = random_.next() >> 40;
    if (auto lsn = log.append_data(object, {offset, bytes}, state)) {
      note(*lsn, RecordKind::kData, file, state);
      said_[raw(*lsn)].words[0] = offset;
      said_[raw(*lsn)].payload = std::move(bytes);
    } else if (lsn.status().code() == StatusCode::kExhausted) {
      for (const PressingObject& pressing : log.pressure()) {
        for (std::uint64_t other = 0; other < kFiles; ++other) {
          if (objects_[other] == pressing.object) store(log, pressing.object, other, state);
        }
      }
      commit(log);
    }
  }

  void commit(DurableLog& log) {
    const Lsn upto = log.appended();
    if (log.commit(upto).is_ok()) acknowledged_ = std::max(acknowledged_, upto);
  }

  void store(DurableLog& log, LogObject object, std::uint64_t file, const FileState& state) {
    if (!log.begin_storing(object).is_ok()) return;
    const Lsn upto = log.appended();
    if (log.retire(object, upto, state).is_ok() || is_doubtful()) settle(file, raw(upto));
  }

  void settle(std::uint64_t file, std::uint64_t upto) {
    for (auto& [lsn, said] : said_) {
      if (said.file == file && lsn <= upto) said.is_needed = false;
    }
  }

  void note(Lsn lsn, RecordKind kind, std::uint64_t file, const FileState& state) {
    said_[raw(lsn)] = {
        kind, file, {0, state.size, static_cast<std::uint64_t>(state.mtime_ns)}, {}, true};
  }

  // Whether a statement may be there although its append failed.
  bool is_doubtful() const { return may_fail_ || disk_.is_off(); }

  RandomSource random_;
  PowerCutDisk disk_;
  bool may_fail_ = false;
  std::map<std::uint64_t, LogObject> objects_;
  std::map<std::uint64_t, Said> said_;
  std::set<std::uint64_t> under_way_;
  Lsn acknowledged_ = Lsn::kNone;
};

TEST(PowerCut, NothingCommittedIsLostAndNothingTornIsReturned) {
  const std::uint64_t cuts = setting("CAIRN_POWER_CUTS", kPowerCuts);
  const std::uint64_t first = setting("CAIRN_SEED", 1);
  constexpr std::uint64_t kCutsOfOne = 5;
  for (std::uint64_t seed = first; seed < first + cuts / kCutsOfOne; ++seed) {
    SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
    History history(seed);
    for (std::uint64_t cut = 0; cut < kCutsOfOne; ++cut) {
      history.cut_in(cut == 0 ? 60 : 600);
      history.run_until_cut();
      history.check_after_cut();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(PowerCut, NorIsItWhenTheDiskFailsBefore) {
  const std::uint64_t first = setting("CAIRN_SEED", 1);
  const std::uint64_t last = first + setting("CAIRN_POWER_CUTS", kPowerCuts) / 3;
  for (std::uint64_t seed = first; seed < last; ++seed) {
    SCOPED_TRACE("CAIRN_SEED=" + std::to_string(seed));
    History history(seed);
    for (int cut = 0; cut < 3; ++cut) {
      history.fail_in(200);
      history.cut_in(600);
      history.run_until_cut();
      history.check_after_cut();
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace cairn::durable
