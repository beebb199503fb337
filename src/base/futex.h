// SPDX-License-Identifier: Apache-2.0
// Wait and wake on a 32-bit word in shared memory (futex(2)), always with a bound on the wait.
//
// Thread safety: any thread of any process that maps the word.
#pragma once

#include <linux/futex.h>

#include <errno.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "base/clock.h"
#include "base/system_call.h"

namespace cairn {

// Sleeps while *word == expected, for at most `timeout_ms`. Returns false when the time ran out.
inline bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected,
                       int timeout_ms) {
  const timespec timeout = to_timespec(static_cast<std::int64_t>(timeout_ms) * 1'000'000);
  const long result = sys::call(SYS_futex, sys::word(&word), FUTEX_WAIT,
                                static_cast<long>(expected), sys::word(&timeout));
  return result != -ETIMEDOUT;
}

inline void futex_wake(const std::atomic<std::uint32_t>& word, int count = INT_MAX) {
  sys::call(SYS_futex, sys::word(&word), FUTEX_WAKE, count);
}

}  // namespace cairn
