// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/store_figures.h"

#include <pthread.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "service/process/thread_start.h"

namespace cairn::node {

void StoreFigures::ask() {
  const std::lock_guard lock(mutex_);
  ask_locked();
}

// The directory stays the same when its run has ended: what is in the tiers came from there.
void StoreFigures::ask_locked() {
  if (is_stopping_) return;
  if (directory_.empty()) {
    // A run says its own, and may say anything.
    const std::vector<std::string> known = directories_.all();
    const auto first =
        std::ranges::find_if(known, [](const auto& path) { return path.starts_with('/'); });
    if (first == known.end()) return;
    directory_ = *first;
  }
  is_asked_ = true;
  // Without a thread the next call tries again.
  if (!thread_.joinable()) (void)start_thread(&thread_, [this] { work(); });
  wake_.notify_all();
}

StoreFigures::Figures StoreFigures::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

StoreFigures::Figures StoreFigures::last_or_ask() {
  const std::lock_guard lock(mutex_);
  // A directory that is known was asked for: the answer comes, or the store hangs.
  if (last_ == nullptr && directory_.empty()) ask_locked();
  return last_;
}

void StoreFigures::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StoreFigures::work() {
  pthread_setname_np(pthread_self(), "cairn-store");
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_asked_ || is_stopping_; });
    if (is_stopping_) return;
    is_asked_ = false;
    const std::string directory = directory_;
    CAIRN_CHECK(!directory.empty());
    lock.unlock();
    auto found = std::make_shared<const profiler::TierFigures>(look_(directory));
    lock.lock();
    last_ = std::move(found);
  }
}

}  // namespace cairn::node
