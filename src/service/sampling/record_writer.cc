// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/record_writer.h"

#include <pthread.h>

#include <utility>

#include "base/check.h"
#include "service/process/log.h"
#include "service/process/thread_start.h"
#include "service/sampling/record_file.h"

namespace cairn::node {

void RecordWriter::put(const std::string& path, std::string text) {
  CAIRN_CHECK(!path.empty());
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  waiting_[path] = std::move(text);
  // Without a thread it waits for the next call.
  if (!thread_.joinable()) (void)start_thread(&thread_, [this] { work(); });
  changed_.notify_all();
}

void RecordWriter::leave(const std::string& path) {
  std::unique_lock lock(mutex_);
  waiting_.erase(path);
  failed_.erase(path);
  if (writing_ != path) return;
  is_left_ = true;
  (void)changed_.wait_for(lock, kPatience, [&] { return writing_ != path || !is_replacing_; });
}

void RecordWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void RecordWriter::work() {
  pthread_setname_np(pthread_self(), "cairn-records");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_stopping_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    write(&lock);
  }
}

// Requires: the lock, which is not held while the system works.
void RecordWriter::write(std::unique_lock<std::mutex>* lock) {
  CAIRN_CHECK(writing_.empty());
  const auto next = waiting_.extract(waiting_.begin());
  writing_ = next.key();
  is_left_ = false;
  lock->unlock();
  const Status status = write_record(next.key(), next.mapped(), [this] {
    const std::lock_guard held(mutex_);
    is_replacing_ = !is_left_;
    return is_replacing_;
  });
  lock->lock();
  CAIRN_CHECK(writing_ == next.key());
  const bool is_news = !status && !is_left_ && failed_.insert(next.key()).second;
  if (status) failed_.erase(next.key());
  writing_.clear();
  is_replacing_ = false;
  changed_.notify_all();
  if (is_news) log::warn("the record {} is not kept: {}", next.key(), status.message());
}

}  // namespace cairn::node
