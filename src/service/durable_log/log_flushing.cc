// SPDX-License-Identifier: Apache-2.0
//
// How records become durable: threads wait for a flush, and two threads of the log work for them.
#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "service/durable_log/log_core.h"

#include "base/check.h"
#include "base/crash_point.h"

namespace cairn::durable {

namespace {

// What nobody waits for is durable after this long.
constexpr std::chrono::seconds kLazyFlush{1};
// The opening of a log verifies each payload that no record declares durable: at most so many
// bytes.
constexpr std::uint64_t kUndeclaredBytesMax = std::uint64_t{64} << 20;

}  // namespace

Lsn LogCore::written(const Lock& lock) const {
  CAIRN_CHECK(lock.owns_lock());
  return in_flight_.empty() ? last_ : static_cast<Lsn>(in_flight_.begin()->first - 1);
}

Status LogCore::commit_until(Lsn lsn, const std::chrono::steady_clock::time_point* limit) {
  Lock lock(mutex_);
  CAIRN_CHECK(lsn <= last_);
  ++figures_.commits;
  const auto is_settled = [&] { return durable_ >= lsn || !failure_.is_ok(); };
  if (!is_settled()) {
    wanted_ = std::max(wanted_, lsn);
    const auto mine = waiting_.insert(raw(lsn));
    flush_wanted_.notify_one();
    bool is_in_time = true;
    if (limit == nullptr) {
      durable_changed_.wait(lock, is_settled);
    } else {
      is_in_time = durable_changed_.wait_until(lock, *limit, is_settled);
    }
    // A flush removes the threads it serves from the set.
    if (durable_ < lsn) waiting_.erase(mine);
    if (!is_in_time) {
      return {StatusCode::kUnavailable, storage_->where() + ": the device does not answer",
              ETIMEDOUT};
    }
  }
  return durable_ >= lsn ? Status::ok() : failure_;
}

void LogCore::fail(Lock& lock, const Status& status) {
  CAIRN_CHECK(lock.owns_lock() && !status.is_ok());
  if (failure_.is_ok()) failure_ = status;
  durable_changed_.notify_all();
  flush_wanted_.notify_all();
  ready_changed_.notify_all();
}

void LogCore::flush_loop() {
  Lock lock(mutex_);
  while (failure_.is_ok()) {
    const bool is_pending = last_ > durable_;
    if (wanted_ > durable_ && written(lock) > durable_) {
      await_company(lock);
      if (!flush_once(lock)) return;
    } else if (is_closing_) {
      return;
    } else if (is_pending && in_flight_.empty()) {
      if (flush_wanted_.wait_for(lock, kLazyFlush) == std::cv_status::timeout) {
        wanted_ = std::max(wanted_, last_);
      }
    } else if (!is_pending && has_news_to_declare(lock)) {
      const bool is_quiet = flush_wanted_.wait_for(lock, kLazyFlush) == std::cv_status::timeout;
      if (is_quiet && has_news_to_declare(lock)) say_where_log_begins(lock);
    } else {
      flush_wanted_.wait(lock);
    }
  }
}

// The threads that the last flush has woken are about to commit again: a flush that does not wait
// for them serves half of the threads at a time, and each waits for two.
void LogCore::await_company(Lock& lock) {
  const auto until = std::chrono::steady_clock::now() + flush_time_ / 4;
  flush_wanted_.wait_until(lock, until, [this] {
    return waiting_.size() >= company_ || !failure_.is_ok() || is_closing_;
  });
}

bool LogCore::flush_once(Lock& lock) {
  const Lsn target = written(lock);
  std::vector<std::shared_ptr<LogFile>> files;
  for (const UsedSegment& segment : ring_.used()) {
    if (segment.last > durable_ && segment.first <= target) files.push_back(segment.place.file);
  }
  CAIRN_CHECK(!files.empty());
  const std::uint64_t target_bytes =
      in_flight_.empty() ? placed_bytes_ : in_flight_.begin()->second;
  const auto began = std::chrono::steady_clock::now();
  lock.unlock();
  CAIRN_CRASH_POINT("log.flushing");
  int error = 0;
  for (const auto& file : files) {
    if (error == 0) error = file->flush();
  }
  CAIRN_CRASH_POINT("log.flushed");
  lock.lock();
  if (error != 0) {
    fail(lock, Status::from_errno(-error, storage_->where()));
    return false;
  }
  CAIRN_CHECK(target > durable_);
  durable_ = target;
  durable_bytes_ = target_bytes;
  flush_time_ = std::chrono::steady_clock::now() - began;
  // Those it has served, and those who have come meanwhile.
  company_ = waiting_.size();
  waiting_.erase(waiting_.begin(), waiting_.upper_bound(raw(durable_)));
  ++figures_.flushes;
  if (ring_.settle_freed(durable_)) ready_changed_.notify_all();
  if (!is_ended_) {
    free_segments(lock);
    declare_durable(lock);
  }
  durable_changed_.notify_all();
  return failure_.is_ok();
}

bool LogCore::may_declare(const Lock& lock) {
  CAIRN_CHECK(lock.owns_lock());
  return failure_.is_ok() && !is_ended_ &&
         ring_.head().end + kRecordHeaderBytes <= ring_.segment_bytes();
}

// The next record would say it, but there may be none.
void LogCore::declare_durable(Lock& lock) {
  if (durable_bytes_ - declared_bytes_ >= kUndeclaredBytesMax && may_declare(lock))
    say_where_log_begins(lock);
}

// Damage to a record that somebody was told of looks else like the torn end of what nobody was.
bool LogCore::has_news_to_declare(const Lock& lock) {
  return last_ == durable_ && durable_bytes_ != declared_bytes_ && durable_ > declaration_ &&
         !is_closing_ && may_declare(lock);
}

// The record that frees a segment is small, and every segment has room for a few.
void LogCore::free_segments(Lock& lock) {
  CAIRN_CHECK(lock.owns_lock());
  while (ring_.is_oldest_free(durable_) &&
         ring_.head().end + kRecordHeaderBytes <= ring_.segment_bytes()) {
    ReadySegment freed = ring_.take_oldest();
    say_where_log_begins(lock);
    CAIRN_CRASH_POINT("log.freed");
    ring_.add_freed(std::move(freed), last_);
    if (!failure_.is_ok()) return;
  }
}

// As every record it also says what is durable.
void LogCore::say_where_log_begins(Lock& lock) {
  RecordDraft draft{RecordKind::kFreed, 0, LogObject::kNone, {}, {}};
  draft.words[0] = ring_.used().front().number;
  const Placed placed = place(lock, draft, payload_checksum(log_, {}));
  declaration_ = placed.header.lsn;
  std::vector<std::byte> bytes(kRecordHeaderBytes);
  const int error = write_record(placed, bytes);
  in_flight_.erase(raw(placed.header.lsn));
  if (error != 0) fail(lock, Status::from_errno(-error, storage_->where()));
}

void LogCore::prepare_loop() {
  Lock lock(mutex_);
  while (failure_.is_ok() && !is_closing_) {
    if (!ring_.wants_ready()) {
      ready_changed_.wait(lock);
      continue;
    }
    const std::string name = ring_.next_name();
    lock.unlock();
    auto made = ring_.make_segment(name);
    lock.lock();
    if (made) {
      ring_.add_ready(std::move(*made));
    } else {
      fail(lock, made.status());
    }
    ready_changed_.notify_all();
  }
}

}  // namespace cairn::durable
