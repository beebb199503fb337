// SPDX-License-Identifier: Apache-2.0
// The records of several segments, in the order of the log, read by threads that are a few segments
// ahead. Behind large payloads headers are small reads far from each other; one reader has too few
// of them under way to keep a fast device busy.
//
// Thread safety: the functions belong to one thread; the class has threads of its own, which read
// the files meanwhile. Ownership: borrows the segments, whose files and numbers stay as they are
// until it is gone. Memory: at most kLaneBytes and one record for each of kSegmentsAhead segments.
// Errors: as SegmentReader.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "service/durable_log/segment_reader.h"

namespace cairn::durable {

struct SegmentFile {
  LogFile* file = nullptr;
  std::uint64_t number = 0;
};

class RecordStream {
 public:
  static constexpr std::size_t kReadersMax = 4;
  static constexpr std::size_t kSegmentsAhead = 8;
  static constexpr std::size_t kLaneBytes = std::size_t{2} << 20;

  struct Item {
    Found found = Found::kEnd;
    FoundRecord record;
    std::uint64_t end = 0;  // as SegmentReader::end()
  };

  RecordStream(std::vector<SegmentFile> segments, std::uint64_t log, Payloads payloads);
  ~RecordStream();
  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  // The next record of the segment that is being taken, or its end. Once that was kEnd, the next
  // call begins the segment after it; once it was kError, no call may follow.
  // Requires: fewer kEnd so far than there are segments.
  Item next();
  // The positive errno that the last kError was about.
  int error() const { return error_; }

 private:
  using Batch = std::vector<Item>;
  // Records of a segment that the readers have found and nobody has taken yet.
  struct Lane {
    std::deque<Batch> batches;
    std::size_t bytes = 0;
    int error = 0;
  };

  Item next_unaided();
  void read_segments();
  void read_segment(std::size_t index);
  bool pass_on(std::size_t index, Batch batch, int error);

  const std::vector<SegmentFile> segments_;
  const std::uint64_t log_;
  const Payloads payloads_;
  // Used by the thread that takes.
  std::size_t taken_ = 0;  // segments that are taken whole; readers read it under the lock
  Batch batch_;
  std::size_t at_ = 0;  // in batch_
  int batch_error_ = 0;
  int error_ = 0;
  std::optional<SegmentReader> reader_;  // of a log too small for threads

  std::mutex mutex_;
  std::condition_variable wanted_;  // readers wait for room, or for a segment that may be begun
  std::condition_variable found_;
  // Below: guarded by mutex_.
  std::vector<Lane> lanes_;  // one for each segment
  std::size_t begun_ = 0;    // segments that a reader has begun
  bool is_stopping_ = false;

  std::vector<std::thread> readers_;
};

}  // namespace cairn::durable
