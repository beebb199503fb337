// SPDX-License-Identifier: Apache-2.0
// A mutual-exclusion lock of one process: a futex word and nothing else, so that it can live in a
// page that the
// kernel wipes in a forked child (a lock that another thread held at the fork is then free in the
// child).
//
// Thread safety: that is its purpose. Not recursive; never held across a call into the application.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/futex.h"
#include "base/signal_gate.h"

namespace cairn {

class LocalLock {
 public:
  void lock() {
    enter_signal_gate();
    std::uint32_t seen = 0;
    if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    while (word_.exchange(2, std::memory_order_acquire) != 0) futex_wait(word_, 2, kSleepMs);
  }
  void unlock() {
    CAIRN_DCHECK(word_.load(std::memory_order_relaxed) != 0);
    if (word_.exchange(0, std::memory_order_release) == 2) futex_wake(word_, 1);
    leave_signal_gate();
  }

 private:
  static constexpr int kSleepMs = 100;
  std::atomic<std::uint32_t> word_{0};
};

class LocalGuard {
 public:
  explicit LocalGuard(LocalLock& lock) : lock_(lock) { lock_.lock(); }
  ~LocalGuard() { lock_.unlock(); }
  LocalGuard(const LocalGuard&) = delete;
  LocalGuard& operator=(const LocalGuard&) = delete;

 private:
  LocalLock& lock_;
};

}  // namespace cairn
