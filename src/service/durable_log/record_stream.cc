// SPDX-License-Identifier: Apache-2.0
#include "service/durable_log/record_stream.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace cairn::durable {

namespace {

// A log of fewer segments is read sooner than threads are started.
constexpr std::size_t kSegmentsForReaders = 4;
constexpr std::size_t kBatchBytes = 32U << 10;

std::size_t bytes_of_item(const RecordStream::Item& item) {
  return sizeof item + item.record.payload.size();
}

std::size_t bytes_of_batch(const std::vector<RecordStream::Item>& batch) {
  std::size_t bytes = 0;
  for (const RecordStream::Item& item : batch) bytes += bytes_of_item(item);
  return bytes;
}

bool is_last(Found found) { return found == Found::kEnd || found == Found::kError; }

}  // namespace

RecordStream::RecordStream(std::vector<SegmentFile> segments, std::uint64_t log, Payloads payloads)
    : segments_(std::move(segments)), log_(log), payloads_(payloads), lanes_(segments_.size()) {
  if (segments_.size() < kSegmentsForReaders) return;
  try {
    for (std::size_t count = 0; count < std::min(kReadersMax, segments_.size()); ++count)
      readers_.emplace_back([this] { read_segments(); });
  } catch (const std::system_error&) {
    // A limit of threads must not keep a log from being read: fewer do, or the caller alone.
  }
}

RecordStream::~RecordStream() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wanted_.notify_all();
  for (std::thread& reader : readers_) reader.join();
}

RecordStream::Item RecordStream::next() {
  CAIRN_CHECK(taken_ < segments_.size() && error_ == 0);
  if (readers_.empty()) return next_unaided();
  if (at_ == batch_.size()) {
    std::unique_lock lock(mutex_);
    Lane& lane = lanes_[taken_];
    found_.wait(lock, [&lane] { return !lane.batches.empty(); });
    batch_ = std::move(lane.batches.front());
    at_ = 0;
    lane.batches.pop_front();
    lane.bytes -= bytes_of_batch(batch_);
    batch_error_ = lane.error;
    lock.unlock();
    wanted_.notify_all();
  }
  Item item = std::move(batch_[at_++]);
  if (item.found == Found::kError) {
    CAIRN_CHECK(batch_error_ != 0);
    error_ = batch_error_;
  }
  if (item.found == Found::kEnd) {
    CAIRN_CHECK(at_ == batch_.size());
    const std::lock_guard lock(mutex_);
    ++taken_;
    wanted_.notify_all();
  }
  return item;
}

RecordStream::Item RecordStream::next_unaided() {
  const SegmentFile& segment = segments_[taken_];
  if (!reader_) reader_.emplace(*segment.file, log_, segment.number);
  Item item;
  item.found = reader_->next(payloads_, item.record);
  item.end = reader_->end();
  error_ = reader_->error();
  if (item.found == Found::kEnd) {
    ++taken_;
    reader_.reset();
  }
  return item;
}

// Segments are begun in order: the one that is being taken always has a reader, so a reader that
// waits for room in a later one never keeps the others waiting.
void RecordStream::read_segments() {
  std::unique_lock lock(mutex_);
  while (true) {
    wanted_.wait(lock, [this] {
      return is_stopping_ || begun_ == segments_.size() || begun_ < taken_ + kSegmentsAhead;
    });
    if (is_stopping_ || begun_ == segments_.size()) return;
    const std::size_t index = begun_++;
    lock.unlock();
    read_segment(index);
    lock.lock();
  }
}

void RecordStream::read_segment(std::size_t index) {
  const SegmentFile& segment = segments_[index];
  SegmentReader reader(*segment.file, log_, segment.number);
  Batch batch;
  std::size_t bytes = 0;
  while (true) {
    Item item;
    item.found = reader.next(payloads_, item.record);
    item.end = reader.end();
    bytes += bytes_of_item(item);
    batch.push_back(std::move(item));
    const bool is_end = is_last(batch.back().found);
    if (!is_end && bytes < kBatchBytes) continue;
    if (!pass_on(index, std::exchange(batch, {}), reader.error()) || is_end) return;
    bytes = 0;
  }
}

// Returns whether the rest of the segment is wanted.
bool RecordStream::pass_on(std::size_t index, Batch batch, int error) {
  CAIRN_CHECK(!batch.empty());
  std::unique_lock lock(mutex_);
  Lane& lane = lanes_[index];
  wanted_.wait(lock, [&] { return is_stopping_ || lane.bytes < kLaneBytes; });
  lane.bytes += bytes_of_batch(batch);
  lane.batches.push_back(std::move(batch));
  lane.error = error;
  found_.notify_one();
  return !is_stopping_;
}

}  // namespace cairn::durable
