// SPDX-License-Identifier: Apache-2.0
// Copies what the log has of a file into an open file: adjacent ranges in large writes, and the log
// is read by a thread of its own while the file is written.
//
// Thread safety: none; one copy at a time. Ownership: borrows the segments and the descriptor.
// Memory: a few chunks of kCopyChunkBytes.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
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

// A file to write, and what became of it.
struct CopyTask {
  const PendingFile* file = nullptr;
  int fd = -1;
  CopyResult result;
};

class ExtentCopy {
 public:
  // `progress` hears of bytes as they are written.
  ExtentCopy(std::uint64_t log, const std::vector<LogSegment>& segments,
             std::function<void(std::uint64_t)> progress);

  // Writes all extents of the files, up to their sizes, in the order in which they lie in the log:
  // files that were written at the same time lie between each other there, and one pass reads all.
  void run(std::span<CopyTask> tasks);
  CopyResult run(const PendingFile& file, int fd);

 private:
  struct Piece {
    CopyTask* task = nullptr;
    std::uint64_t begin = 0;
    Extent extent;
    const RecordPlace& record() const { return task->file->records[extent.record]; }
  };
  struct Chunk {
    CopyTask* task = nullptr;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
  };
  // Takes a chunk.
  using ChunkSink = std::function<void(Chunk)>;

  static std::vector<Piece> pieces_of(std::span<CopyTask> tasks);
  void produce(const std::vector<Piece>& pieces, const ChunkSink& sink);
  LogFile* file_of(const RecordPlace& record) const;
  void read_ahead(const std::vector<Piece>& pieces);
  void follow(LogFile* file);
  bool read_record(const RecordPlace& record, std::span<std::byte> out, CopyResult& result);
  bool append(const Piece& piece, Chunk& chunk);
  void consume(const Chunk& chunk);
  std::vector<std::byte> take_bytes();
  void give_back(std::vector<std::byte> bytes);
  static int write_chunk(int fd, const Chunk& chunk);
  bool run_threads(const std::vector<Piece>& pieces);

  std::uint64_t log_;
  const std::vector<LogSegment>& segments_;
  std::function<void(std::uint64_t)> progress_;
  // Memory of chunks that are written, for the next ones: its pages are there already.
  std::mutex spare_mutex_;
  std::vector<std::vector<std::byte>> spare_;
  // The last record of which only a part was wanted.
  std::vector<std::byte> kept_;
  Lsn kept_lsn_ = Lsn::kNone;
  // The segment that is read, in the order of the log.
  LogFile* reading_ = nullptr;
  // How many pieces the kernel has been asked to read ahead, and how many bytes are not read yet.
  std::size_t ahead_ = 0;
  std::uint64_t ahead_bytes_ = 0;
};

}  // namespace cairn::durable
