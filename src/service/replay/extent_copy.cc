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
#include <thread>

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

LogFile& ExtentCopy::file_of(const RecordPlace& record) const {
  const auto segment = std::lower_bound(
      segments_.begin(), segments_.end(), record.segment,
      [](const LogSegment& left, std::uint64_t number) { return left.header.segment < number; });
  CAIRN_CHECK(segment != segments_.end() && segment->header.segment == record.segment);
  return *segment->file;
}

// Files that were written at the same time lie between each other in the log: the kernel's own
// reading ahead would fetch all of them for one.
void ExtentCopy::read_ahead(const PendingFile& file) {
  for (; ahead_ != file.extents.end() && ahead_bytes_ < kAheadBytes; ++ahead_) {
    const RecordPlace& record = file.records[ahead_->second.record];
    file_of(record).read_ahead(record.at, record.bytes);
    ahead_bytes_ += ahead_->second.end - ahead_->first;
  }
}

bool ExtentCopy::read_record(const RecordPlace& record, std::span<std::byte> out,
                             CopyResult& result) {
  CAIRN_CHECK(out.size() == record.bytes);
  const std::int64_t got = file_of(record).read(out, record.at);
  if (got < 0) result.log_error = static_cast<int>(-got);
  return got == static_cast<std::int64_t>(record.bytes) &&
         payload_checksum(log_, out) == record.sum;
}

// Puts the extent's bytes at the end of the chunk; false if they are damaged.
bool ExtentCopy::append(const PendingFile& file, std::uint64_t begin, const Extent& extent,
                        Chunk& chunk, CopyResult& result) {
  const RecordPlace& record = file.records[extent.record];
  const std::size_t bytes = static_cast<std::size_t>(extent.end - begin);
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

void ExtentCopy::produce(const PendingFile& file, std::uint64_t limit, CopyResult& result,
                         const ChunkSink& sink) {
  Chunk chunk;
  ahead_ = file.extents.begin();
  ahead_bytes_ = 0;
  for (const auto& [begin, whole] : file.extents) {
    if (begin >= limit) break;
    if (ahead_bytes_ <= kAheadBytes / 2) read_ahead(file);
    ahead_bytes_ -= std::min(ahead_bytes_, whole.end - begin);
    Extent extent = whole;
    extent.end = std::min(extent.end, limit);
    const bool follows = !chunk.bytes.empty() && chunk.offset + chunk.bytes.size() == begin;
    if (!follows || chunk.bytes.size() + (extent.end - begin) > kCopyChunkBytes) {
      if (!chunk.bytes.empty() && !sink(std::move(chunk))) return;
      chunk = Chunk{begin, {}};
      chunk.bytes.reserve(kCopyChunkBytes);
    }
    if (append(file, begin, extent, chunk, result)) continue;
    result.damaged.emplace_back(begin, extent.end);
    if (!chunk.bytes.empty() && !sink(std::move(chunk))) return;
    chunk = Chunk{};
  }
  if (!chunk.bytes.empty()) (void)sink(std::move(chunk));
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

CopyResult ExtentCopy::run(const PendingFile& file, int fd, std::uint64_t limit) {
  CopyResult result;
  kept_lsn_ = Lsn::kNone;
  if (file.bytes() > kCopyChunkBytes) {
    run_threads(file, fd, limit, result);
    return result;
  }
  produce(file, limit, result, [&](const Chunk& chunk) {
    result.error = write_chunk(fd, chunk);
    if (result.error == 0) result.bytes += chunk.bytes.size();
    if (result.error == 0) progress_(chunk.bytes.size());
    return result.error == 0;
  });
  return result;
}

void ExtentCopy::run_threads(const PendingFile& file, int fd, std::uint64_t limit,
                             CopyResult& result) {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Chunk> chunks;
  bool is_read = false;
  int error = 0;
  CopyResult reading;
  std::thread reader([&] {
    produce(file, limit, reading, [&](Chunk chunk) {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return chunks.size() < kChunksAhead || error != 0; });
      if (error != 0) return false;
      chunks.push_back(std::move(chunk));
      changed.notify_all();
      return true;
    });
    const std::lock_guard lock(mutex);
    is_read = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  while (error == 0) {
    changed.wait(lock, [&] { return !chunks.empty() || is_read; });
    if (chunks.empty()) break;
    const Chunk chunk = std::move(chunks.front());
    chunks.pop_front();
    changed.notify_all();
    lock.unlock();
    const int failed = write_chunk(fd, chunk);
    if (failed == 0) result.bytes += chunk.bytes.size();
    if (failed == 0) progress_(chunk.bytes.size());
    lock.lock();
    error = failed;
  }
  changed.notify_all();
  lock.unlock();
  reader.join();
  result.error = error;
  result.log_error = reading.log_error;
  result.damaged = std::move(reading.damaged);
}

}  // namespace cairn::durable
