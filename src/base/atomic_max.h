// SPDX-License-Identifier: Apache-2.0
// Raising an atomic to at least a value.
//
// Thread safety: any thread of any process.
#pragma once

#include <atomic>

namespace cairn {

template <typename T>
inline void raise_to(std::atomic<T>& value, T least) {
  T seen = value.load(std::memory_order_relaxed);
  while (seen < least && !value.compare_exchange_weak(seen, least, std::memory_order_acq_rel,
                                                      std::memory_order_relaxed)) {
  }
}

}  // namespace cairn
