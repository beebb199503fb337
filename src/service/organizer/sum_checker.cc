// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/sum_checker.h"

#include <pthread.h>

#include <system_error>

#include "base/check.h"

namespace cairn {

namespace {

void check_all(std::span<SumCheck> checks) {
  for (SumCheck& check : checks)
    check.result = check.place.tier->check_parts(check.place.extent, check.parts);
}

}  // namespace

SumChecker::~SumChecker() {
  {
    const std::lock_guard lock(mutex_);
    CAIRN_CHECK(checks_.empty());
    ends_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void SumChecker::start(std::span<SumCheck> checks) {
  CAIRN_CHECK(!checks.empty());
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {
      // No thread is to be had: then the device waits.
      return check_all(checks);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    CAIRN_CHECK(checks_.empty());
    checks_ = checks;
  }
  changed_.notify_all();
}

void SumChecker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return checks_.empty(); });
}

void SumChecker::work() {
  pthread_setname_np(pthread_self(), "cairn-sums");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !checks_.empty(); });
    if (ends_) return;
    const std::span<SumCheck> checks = checks_;
    lock.unlock();
    check_all(checks);
    lock.lock();
    checks_ = {};
    changed_.notify_all();
  }
}

}  // namespace cairn
