// SPDX-License-Identifier: Apache-2.0
#include "service/replay/extent_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/check.h"

namespace cairn::durable {

namespace {

// Chunks that are read and not written yet.
constexpr std::size_t kChunksAhead = 3;
// Bytes of the log that the kernel reads meanwhile.
constexpr std::uint64_t kAheadBytes = std::uint64_t{32} << 20;

}  // namespace

ExtentCopy::ExtentCopy(std::uint64_t log, const std::vector<LogSegment>& segments,
                       std::function<void(std::uint64_t)> progress)
    : log_(log), segments_(segments), progress_(std::move(progress)) {}

// Null: the log has let go of the segment. Its bytes count as damaged then.
LogFile* ExtentCopy::file_of(const RecordPlace& record) const {
  const auto segment = std::lower_bound(
      segments_.begin(), segments_.end(), record.segment,
      [](const LogSegment& left, std::uint64_t number) { return left.header.segment < number; });
  const bool is_there = segment != segments_.end() && segment->header.segment == record.segment;
  return is_there ? segment->file.get() : nullptr;
}

void ExtentCopy::read_ahead(const std::vector<Piece>& pieces) {
  for (; ahead_ < pieces.size() && ahead_bytes_ < kAheadBytes; ++ahead_) {
    const RecordPlace& record = pieces[ahead_].record();
    if (LogFile* file = file_of(record); file != nullptr) file->read_ahead(record.at, record.bytes);
    ahead_bytes_ += pieces[ahead_].extent.end - pieces[ahead_].begin;
  }
}

// A log of many gigabytes would displace what others have in the kernel's memory, and what the
// store has not taken yet.
void ExtentCopy::follow(LogFile* file) {
  if (file == nullptr || file == reading_) return;
  if (reading_ != nullptr) reading_->let_go();
  reading_ = file;
}

bool ExtentCopy::read_record(const RecordPlace& record, std::span<std::byte> out,
                             CopyResult& result) {
  CAIRN_CHECK(out.size() == record.bytes);
  LogFile* const file = file_of(record);
  if (file == nullptr) return false;
  follow(file);
  const std::int64_t got = file->read(out, record.at);
  if (got < 0) result.log_error = static_cast<int>(-got);
  return got == static_cast<std::int64_t>(record.bytes) &&
         payload_checksum(log_, out) == record.sum;
}

std::vector<ExtentCopy::Piece> ExtentCopy::pieces_of(std::span<CopyTask> tasks) {
  std::vector<Piece> pieces;
  for (CopyTask& task : tasks) {
    for (const auto& [begin, extent] : task.file->extents) {
      CAIRN_CHECK(begin < extent.end && extent.record < task.file->records.size());
      if (begin >= task.file->state.size) break;
      pieces.push_back({&task, begin, extent});
      Extent& piece = pieces.back().extent;
      piece.end = std::min(piece.end, task.file->state.size);
    }
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& left, const Piece& right) {
    const Lsn first = left.record().lsn;
    const Lsn second = right.record().lsn;
    return first != second ? first < second : left.begin < right.begin;
  });
  return pieces;
}

// Puts the piece's bytes at the end of the chunk; false if they are damaged.
bool ExtentCopy::append(const Piece& piece, Chunk& chunk) {
  const RecordPlace& record = piece.record();
  const Extent& extent = piece.extent;
  CopyResult& result = piece.task->result;
  const std::size_t bytes = static_cast<std::size_t>(extent.end - piece.begin);
  CAIRN_CHECK(extent.skip + bytes <= record.bytes);
  const std::size_t at = chunk.bytes.size();
  chunk.bytes.resize(at + bytes);
  const std::span<std::byte> place = std::span(chunk.bytes).subspan(at);
  bool is_whole = true;
  if (bytes == record.bytes) {
    is_whole = read_record(record, place, result);
  } else {
    if (kept_lsn_ != record.lsn) {
      kept_.resize(record.bytes);
      kept_lsn_ = read_record(record, kept_, result) ? record.lsn : Lsn::kNone;
    }
    is_whole = kept_lsn_ == record.lsn;
    if (is_whole) std::memcpy(place.data(), kept_.data() + extent.skip, bytes);
  }
  if (!is_whole) chunk.bytes.resize(at);
  return is_whole;
}

void ExtentCopy::produce(const std::vector<Piece>& pieces, const ChunkSink& sink) {
  Chunk chunk{nullptr, 0, take_bytes()};
  const auto pass_on = [&](CopyTask* task, std::uint64_t begin) {
    if (chunk.bytes.empty()) {
      chunk.task = task;
      chunk.offset = begin;
      return;
    }
    sink(std::move(chunk));
    chunk = Chunk{task, begin, take_bytes()};
  };
  ahead_ = 0;
  ahead_bytes_ = 0;
  kept_lsn_ = Lsn::kNone;
  reading_ = nullptr;
  for (const Piece& piece : pieces) {
    const std::uint64_t bytes = piece.extent.end - piece.begin;
    if (ahead_bytes_ <= kAheadBytes / 2) read_ahead(pieces);
    ahead_bytes_ -= std::min(ahead_bytes_, bytes);
    const bool follows =
        chunk.task == piece.task && chunk.offset + chunk.bytes.size() == piece.begin;
    if (!follows || chunk.bytes.size() + bytes > kCopyChunkBytes) {
      pass_on(piece.task, piece.begin);
    }
    if (append(piece, chunk)) continue;
    piece.task->result.damaged.emplace_back(piece.begin, piece.extent.end);
    pass_on(nullptr, 0);
  }
  pass_on(nullptr, 0);
  give_back(std::move(chunk.bytes));
}

std::vector<std::byte> ExtentCopy::take_bytes() {
  const std::lock_guard lock(spare_mutex_);
  if (spare_.empty()) return {};
  std::vector<std::byte> taken = std::move(spare_.back());
  spare_.pop_back();
  return taken;
}

void ExtentCopy::give_back(std::vector<std::byte> bytes) {
  bytes.clear();
  const std::lock_guard lock(spare_mutex_);
  if (spare_.size() <= kChunksAhead) spare_.push_back(std::move(bytes));
}

int ExtentCopy::write_chunk(int fd, const Chunk& chunk) {
  std::size_t done = 0;
  while (done < chunk.bytes.size()) {
    const ssize_t put = ::pwrite(fd, chunk.bytes.data() + done, chunk.bytes.size() - done,
                                 static_cast<off_t>(chunk.offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? errno : EIO;
    done += static_cast<std::size_t>(put);
  }
  // The store begins to work now, not when the file is flushed; where it cannot, nothing is lost.
  ::sync_file_range(fd, static_cast<off_t>(chunk.offset), static_cast<off_t>(chunk.bytes.size()),
                    SYNC_FILE_RANGE_WRITE);
  return 0;
}

// Results of a file are written by two threads: damage by the reader, all else here.
void ExtentCopy::consume(const Chunk& chunk) {
  CAIRN_CHECK(chunk.task != nullptr && chunk.task->fd >= 0);
  CopyResult& result = chunk.task->result;
  if (result.error != 0) return;
  result.error = write_chunk(chunk.task->fd, chunk);
  if (result.error != 0) return;
  result.bytes += chunk.bytes.size();
  progress_(chunk.bytes.size());
}

CopyResult ExtentCopy::run(const PendingFile& file, int fd) {
  CopyTask task{&file, fd, {}};
  run(std::span(&task, 1));
  return std::move(task.result);
}

void ExtentCopy::run(std::span<CopyTask> tasks) {
  const std::vector<Piece> pieces = pieces_of(tasks);
  std::uint64_t bytes = 0;
  for (const CopyTask& task : tasks) bytes += task.file->bytes();
  if (bytes > kCopyChunkBytes && run_threads(pieces)) return;
  produce(pieces, [this](Chunk chunk) {
    consume(chunk);
    give_back(std::move(chunk.bytes));
  });
}

// False, and nothing is done, where the system gives no thread.
bool ExtentCopy::run_threads(const std::vector<Piece>& pieces) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Chunk> chunks;
  std::uint64_t waiting_bytes = 0;
  bool is_read = false;
  std::thread reader;
  const auto read = [&] {
    produce(pieces, [&](Chunk chunk) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return waiting_bytes < kChunksAhead * kCopyChunkBytes; });
      waiting_bytes += chunk.bytes.size();
      chunks.push_back(std::move(chunk));
      changed.notify_all();
    });
    const std::lock_guard lock(mutex);
    is_read = true;
    changed.notify_all();
  };
  try {
    reader = std::thread(read);
  } catch (const std::system_error&) {
    return false;
  }
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return !chunks.empty() || is_read; });
    if (chunks.empty()) break;
    Chunk chunk = std::move(chunks.front());
    chunks.pop_front();
    waiting_bytes -= chunk.bytes.size();
    changed.notify_all();
    lock.unlock();
    consume(chunk);
    give_back(std::move(chunk.bytes));
    lock.lock();
  }
  CAIRN_CHECK(waiting_bytes == 0);
  lock.unlock();
  reader.join();
  return true;
}

}  // namespace cairn::durable
