// SPDX-License-Identifier: Apache-2.0
// What a log still has to bring to the backing store: for each file the newest bytes of every
// range, its size and time, and how its file on the store may look if nobody else has changed it.
//
// Thread safety: none. Ownership: values; a place in the log is a segment's number and an offset.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "service/durable_log/log_scan.h"
#include "service/durable_log/name_change.h"

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

// How a file that is made again is to be, besides its bytes.
struct FileOwner {
  std::uint32_t mode = 0600;
  std::uint32_t user = 0;
  std::uint32_t group = 0;
};

struct PendingFile {
  LogObject object = LogObject::kNone;
  FileIdentity identity;
  // Before it was renamed, if the machine has been started anew since: the store may have lost the
  // renaming. Else empty.
  std::string former_path;
  bool was_renamed = false;  // and nothing was written since
  Lsn last = Lsn::kNone;     // the last record that counts
  FileState state;           // after it
  FileState store;           // as last known on the store
  StoringWindow window;
  // Sizes and times that the file may have on its store, by our own doing.
  std::set<std::uint64_t> sizes;
  std::set<std::int64_t> times;
  // The file was cut to this size and grew again: what is beyond on the store is void.
  std::uint64_t cut_to = ~std::uint64_t{0};
  Lsn cut_by = Lsn::kNone;
  // As names that somebody was told of have it; else it is made again as nobody's but the caller's.
  std::optional<FileOwner> owner;
  // The log's names have it under one, or under none any more.
  bool is_named = false;
  bool is_unnamed = false;
  bool is_removed = false;       // its last name was gone when the log heard of it last
  std::uint64_t removed_in = 0;  // the start of the machine in which that was (boot_mark())
  Lsn renamed_by = Lsn::kNone;   // the last record that gave it another path
  // It is removed, another file came to its name, which so means the removed one no more, and the
  // machine has been started anew since. kNone: none has.
  LogObject superseded_by = LogObject::kNone;
  bool is_kept = false;  // by recovery, in the log
  std::vector<RecordPlace> records;
  std::map<std::uint64_t, Extent> extents;  // by their first offset; disjoint

  // Whether anything is left to do.
  bool is_pending() const { return last != Lsn::kNone; }
  std::uint64_t bytes() const;
  // Where it is not found, it is gone, and was to be.
  bool may_be_gone() const { return is_superseded() || (!is_named && (is_unnamed || is_removed)); }
  bool is_superseded() const { return superseded_by != LogObject::kNone; }
  // The log has every byte of the file: nothing of it was on the store before.
  bool is_complete() const;
};

// A directory of whose names the store may have older ones than the log.
struct PendingDirectory {
  struct Record {
    Lsn lsn = Lsn::kNone;
    std::uint64_t boot = 0;  // of the machine when it was written; 0: not known
    std::vector<NameChange> changes;
  };
  LogObject object = LogObject::kNone;
  FileIdentity identity;
  std::vector<Record> records;  // in their order; at least one
};

class LogIndex {
 public:
  // A visitor of LogScan::run().
  void add(const FoundRecord& record, const LogSegment& segment);

  // Programs have stored all of that file since: what it has up to there is void. Returns what was.
  struct Voided {
    LogObject object = LogObject::kNone;
    Lsn upto = Lsn::kNone;
    FileState store;
  };
  std::vector<Voided> void_stored(const std::function<bool(const ObjectKey&)>& is_it, Lsn upto);
  // Files with something left to do, by the number of their objects.
  std::vector<PendingFile> take_pending();
  // The same of directories. Before take_pending().
  std::vector<PendingDirectory> take_directories();

 private:
  void add_data(PendingFile& file, const FoundRecord& record, const LogSegment& segment);
  void state_path(PendingFile& file, Lsn lsn);
  void supersede(PendingFile& file) const;
  static void set_state(PendingFile& file, const RecordHeader& header);
  void stored(PendingFile& file, const RecordHeader& header);

  const std::uint64_t boot_ = boot_mark();
  std::map<std::uint64_t, PendingFile> files_;
  std::map<std::uint64_t, std::vector<PendingDirectory::Record>> names_;
  // By paths: the file that was said last to be there, and by which record.
  struct Stated {
    std::uint64_t object = 0;
    Lsn by = Lsn::kNone;
  };
  std::map<std::string, Stated> stated_;
};

}  // namespace cairn::durable
