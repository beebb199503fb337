// SPDX-License-Identifier: Apache-2.0
#include "service/sampling/store_look.h"

#include <pthread.h>

#include "base/check.h"

namespace cairn::node {

void StoreLook::ask() {
  const std::lock_guard lock(mutex_);
  if (is_stopping_) return;
  is_asked_ = true;
  if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
  wake_.notify_all();
}

nlohmann::json StoreLook::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

void StoreLook::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void StoreLook::work() {
  pthread_setname_np(pthread_self(), "cairn-store");
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return is_asked_ || is_stopping_; });
    if (is_stopping_) return;
    is_asked_ = false;
    lock.unlock();
    nlohmann::json found = look_();
    lock.lock();
    CAIRN_CHECK(found.is_object());
    last_ = std::move(found);
  }
}

}  // namespace cairn::node
