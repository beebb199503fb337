// SPDX-License-Identifier: Apache-2.0
// Cancellation points (POSIX.1-2017, XSH 2.9.5.2): a call that never enters the kernel must ask
// itself whether its thread is to end. It asks before it has done anything: nothing is half done.
//
// A program that has never called pthread_cancel() pays one comparison.
//
// Thread safety: any thread.
#pragma once

#include <pthread.h>

#include <atomic>

namespace cairn {

// Set for good by the first pthread_cancel().
inline constinit std::atomic<bool> has_cancelled{false};

inline void cancellation_point() {
  if (__builtin_expect(has_cancelled.load(std::memory_order_relaxed), 0)) pthread_testcancel();
}

}  // namespace cairn
