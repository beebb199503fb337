// SPDX-License-Identifier: Apache-2.0
// What a log still has to bring to the backing store: for each file the newest bytes of every
// range, its size and time, and how its file on the store may look if nobody else has changed it.
//
// Thread safety: none. Ownership: values; a place in the log is a segment's number and an offset.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "service/durable_log/log_scan.h"

namespace cairn::durable {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;

// Where the payload of a data record lies.
struct RecordPlace {
  std::uint64_t segment = 0;  // its number
  std::uint64_t at = 0;
  std::uint32_t bytes = 0;
  std::uint64_t sum = 0;
  Lsn lsn = Lsn::kNone;
};

// A range of a file up to `end`, whose bytes begin `skip` bytes behind the record's first.
struct Extent {
  std::uint64_t end = 0;
  std::size_t record = 0;  // index into PendingFile::records
  std::uint64_t skip = 0;
};

struct PendingFile {
  LogObject object = LogObject::kNone;
  FileIdentity identity;
  Lsn last = Lsn::kNone;  // the last record that counts
  FileState state;        // after it
  FileState store;        // as last known on the store
  StoringWindow window;
  // Sizes and times that the file may have on its store, by our own doing.
  std::set<std::uint64_t> sizes;
  std::set<std::int64_t> times;
  // The file was cut to this size and grew again: what is beyond on the store is void.
  std::uint64_t cut_to = ~std::uint64_t{0};
  Lsn cut_by = Lsn::kNone;
  std::vector<RecordPlace> records;
  std::map<std::uint64_t, Extent> extents;  // by their first offset; disjoint

  // Whether anything is left to do.
  bool is_pending() const { return last != Lsn::kNone; }
  std::uint64_t bytes() const;
  // The log has every byte of the file: nothing of it was on the store before.
  bool is_complete() const;
};

class LogIndex {
 public:
  // A visitor of LogScan::run().
  void add(const FoundRecord& record, const LogSegment& segment);

  // Files with something left to do, by the number of their objects.
  std::vector<PendingFile> take_pending();

 private:
  void add_data(PendingFile& file, const FoundRecord& record, const LogSegment& segment);
  static void set_state(PendingFile& file, const RecordHeader& header);
  static void stored(PendingFile& file, const RecordHeader& header);

  std::map<std::uint64_t, PendingFile> files_;
};

}  // namespace cairn::durable
