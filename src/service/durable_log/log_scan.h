// SPDX-License-Identifier: Apache-2.0
// Reads a log: which segments belong to it, and their records in order.
//
// A record that cannot be read is one of two things. It may be the torn end: what was on its way to
// the device when the power went, and what nobody was told is durable. Then it and everything after
// it is no part of the log. Or it is damage: a later record says that it was durable
// (RecordHeader::durable). Then it is reported, and the records after it count.
//
// Thread safety: none. Ownership: borrows the storage; owns the open files.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "service/durable_log/log_storage.h"
#include "service/durable_log/segment_reader.h"
#include "service/durable_log/superblock.h"

namespace cairn::durable {

struct LogSegment {
  std::string name;
  std::unique_ptr<LogFile> file;
  RecordHeader header;
  std::uint64_t end = 0;  // after its last record; set by the scan
};

// Records that were durable and cannot be read.
struct Damage {
  Lsn first = Lsn::kNone;
  Lsn last = Lsn::kNone;
  std::string segment;  // the file, or where one is missing
};

struct ScanReport {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // of payloads
  Lsn last = Lsn::kNone;    // the last record of the log
  std::uint64_t torn = 0;   // whole records behind the torn end, which do not count
  bool is_torn = false;     // the end is torn: expected after a power cut
  bool is_clean_end = false;
  std::vector<Damage> damage;
};

// Called for each record in order. Its payload: SegmentReader's FoundRecord.
using RecordVisitor = std::function<void(const FoundRecord& record, const LogSegment& segment)>;

// Hears of what DurableLog::open() finds, and gets its report.
struct FoundLog {
  RecordVisitor visit;
  ScanReport report;
};

class LogScan {
 public:
  // Finds the segments. Errors: of the storage. A folder without segments is an empty log.
  static Result<LogScan> open(LogStorage& storage, const Superblock& superblock);

  // kWhereCheap: payloads of data records that were durable may be unverified; their reader
  // checks them. `visit` is called by the calling thread, while others read on.
  Result<ScanReport> run(Payloads payloads, const RecordVisitor& visit);

  const std::vector<LogSegment>& segments() const { return segments_; }
  std::vector<LogSegment>& segments() { return segments_; }
  // Segment files that hold nothing of the log: made ahead, or all of it stored.
  const std::vector<std::string>& spare() const { return spare_; }
  // The highest number of a segment that was found; 0: none.
  std::uint64_t newest() const { return newest_; }

 private:
  struct Waiting {
    FoundRecord record;
    std::size_t segment = 0;
  };

  explicit LogScan(const Superblock& superblock) : superblock_(superblock) {}
  Status drop_dead_segments();
  void note_segment(const LogSegment& segment);
  void drain(ScanReport& report, const RecordVisitor& visit);
  Status finish(ScanReport& report, const RecordVisitor& visit);
  void pass(const Waiting& waiting, ScanReport& report, const RecordVisitor& visit);
  Result<bool> is_whole(Waiting& waiting);

  Superblock superblock_;
  std::vector<LogSegment> segments_;
  std::vector<std::string> spare_;
  std::uint64_t newest_ = 0;
  bool lacks_oldest_ = false;
  // The scan's state: records that no later one has declared durable yet.
  std::deque<Waiting> waiting_;
  Lsn durable_ = Lsn::kNone;
  std::uint64_t next_ = 0;  // the number that the next record should have
};

// The name of the segment file in place `number`.
std::string segment_name(std::uint64_t number);

}  // namespace cairn::durable
