// SPDX-License-Identifier: Apache-2.0
// The segments of a log that is being written: those in use, oldest first, and those made ready.
//
// A segment is written once with zeros before its first use, so that a flush of its records needs
// no change of the file system's own records; later it is used again as it is.
//
// Thread safety: none, the log's lock, except for make_segment(), which works without it.
// Ownership: owns the files; a thread that writes or flushes one shares it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "service/durable_log/log_storage.h"
#include "service/durable_log/record_format.h"

namespace cairn::durable {

struct ReadySegment {
  std::string name;
  std::shared_ptr<LogFile> file;
};

struct UsedSegment {
  std::uint64_t number = 0;
  ReadySegment place;
  std::uint64_t end = 0;  // where the next record goes
  Lsn first = Lsn::kNone;
  Lsn last = Lsn::kNone;   // the last record in it, or of the log before it
  std::uint64_t live = 0;  // objects with live records in it
  // The last record that took a live object from it.
  Lsn freed_by = Lsn::kNone;
};

// A segment that is no part of the log any more. It may be written once the record that says so is
// durable: until then a power cut would leave an old segment with new bytes in it.
struct FreedSegment {
  ReadySegment place;
  Lsn said_by = Lsn::kNone;
};

class SegmentRing {
 public:
  SegmentRing(LogStorage& storage, std::uint64_t segment_bytes, std::uint64_t capacity_bytes);

  // Makes one more segment file, flushed, with its name flushed. Used by one thread at a time.
  Result<ReadySegment> make_segment(const std::string& name);
  std::string next_name();
  void note_name(const std::string& name);

  std::uint64_t segment_bytes() const { return segment_bytes_; }
  std::uint64_t segments_max() const { return segments_max_; }
  // What an earlier node has left may fill the ring: there is always one more for a new beginning.
  void allow_one_more();
  // Segments that may still be begun, made ready or not.
  std::uint64_t unused() const;
  bool wants_ready() const;

  void add_ready(ReadySegment segment) { ready_.push_back(std::move(segment)); }
  bool has_ready() const { return !ready_.empty(); }
  ReadySegment take_ready();

  std::deque<UsedSegment>& used() { return used_; }
  const std::deque<UsedSegment>& used() const { return used_; }
  UsedSegment& head() { return used_.back(); }
  UsedSegment* find(std::uint64_t number);

  // Whether the oldest segment is of no use any more (invariant 3 of the log).
  bool is_oldest_free(Lsn durable) const;
  // Requires: is_oldest_free(). Takes it out of the log.
  ReadySegment take_oldest();
  void add_freed(ReadySegment segment, Lsn said_by);
  bool has_freed() const { return !freed_.empty(); }
  // Returns whether a freed segment has become ready.
  bool settle_freed(Lsn durable);

 private:
  LogStorage& storage_;
  std::uint64_t segment_bytes_;
  std::uint64_t segments_max_;
  std::uint64_t last_name_ = 0;
  std::deque<UsedSegment> used_;
  std::vector<FreedSegment> freed_;
  std::vector<ReadySegment> ready_;
};

}  // namespace cairn::durable
