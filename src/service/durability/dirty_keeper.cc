// SPDX-License-Identifier: Apache-2.0
#include "service/durability/dirty_keeper.h"

#include <pthread.h>

#include "base/check.h"
#include "service/process/thread_start.h"

namespace cairn::node {

std::uint64_t DirtyKeeper::begin() {
  const std::lock_guard lock(mutex_);
  // Without a thread the round is not done in time, and the next one tries again.
  if (!thread_.joinable() && !stopping_) (void)start_thread(&thread_, [this] { work(); });
  ++wanted_;
  changed_.notify_all();
  return wanted_;
}

std::optional<DirtyLogging> DirtyKeeper::round(std::chrono::milliseconds patience) {
  const std::uint64_t number = begin();
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, patience, [&] { return ended_ >= number || stopping_; }) ||
      ended_ < number)
    return std::nullopt;
  return last_;
}

void DirtyKeeper::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void DirtyKeeper::work() {
  pthread_setname_np(pthread_self(), "cairn-keep");
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return wanted_ > ended_ || stopping_; });
    if (stopping_) return;
    const std::uint64_t number = wanted_;
    lock.unlock();
    const DirtyLogging result = log_dirty(memory_, logged_, files_);
    lock.lock();
    CAIRN_CHECK(number > ended_);
    ended_ = number;
    last_ = result;
    changed_.notify_all();
  }
}

}  // namespace cairn::node
