// SPDX-License-Identifier: Apache-2.0
// A fence between relaxed accesses of one thread. ThreadSanitizer does not model fences, and its
// compiler refuses them: under it there is none, and the accesses on both sides have to be atomic.
#pragma once

#include <atomic>

namespace cairn {

inline void fence([[maybe_unused]] std::memory_order order) {
#if !defined(CAIRN_TSAN) && !defined(__SANITIZE_THREAD__)
  std::atomic_thread_fence(order);
#endif
}

}  // namespace cairn
