// SPDX-License-Identifier: Apache-2.0
// Copies what the log has of a file into an open file: adjacent ranges in large writes, and the log
// is read by a thread of its own while the file is written.
//
// Thread safety: none; one copy at a time. Ownership: borrows the segments and the descriptor.
// Memory: a few chunks of kCopyChunkBytes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "service/replay/log_index.h"

namespace cairn::durable {

inline constexpr std::size_t kCopyChunkBytes = std::size_t{4} << 20;

struct CopyResult {
  int error = 0;      // of the file, positive errno
  int log_error = 0;  // of the log
  std::uint64_t bytes = 0;
  // Ranges [begin, end) whose bytes in the log have another checksum: they are not written.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> damaged;
};

class ExtentCopy {
 public:
  // `progress` hears of bytes as they are written.
  ExtentCopy(std::uint64_t log, const std::vector<LogSegment>& segments,
             std::function<void(std::uint64_t)> progress);

  // Writes all extents below `limit` to `fd`.
  CopyResult run(const PendingFile& file, int fd, std::uint64_t limit);

 private:
  struct Chunk {
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  // Takes a chunk; false: no more are wanted.
  using ChunkSink = std::function<bool(Chunk)>;

  void produce(const PendingFile& file, std::uint64_t limit, CopyResult& result,
               const ChunkSink& sink);
  LogFile& file_of(const RecordPlace& record) const;
  void read_ahead(const PendingFile& file);
  bool read_record(const RecordPlace& record, std::span<std::byte> out, CopyResult& result);
  bool append(const PendingFile& file, std::uint64_t begin, const Extent& extent, Chunk& chunk,
              CopyResult& result);
  static int write_chunk(int fd, const Chunk& chunk);
  void run_threads(const PendingFile& file, int fd, std::uint64_t limit, CopyResult& result);

  std::uint64_t log_;
  const std::vector<LogSegment>& segments_;
  std::function<void(std::uint64_t)> progress_;
  // The last record of which only a part was wanted.
  std::vector<std::byte> kept_;
  Lsn kept_lsn_ = Lsn::kNone;
  // How far the log has been asked to read ahead, and how much of that is not read yet.
  std::map<std::uint64_t, Extent>::const_iterator ahead_;
  std::uint64_t ahead_bytes_ = 0;
};

}  // namespace cairn::durable
