// SPDX-License-Identifier: Apache-2.0
// The processor's constant-rate counter: the cheapest clock there is, in units of its own.
//
// Counters add up cycles; a reporter converts them with the rate seen since an anchor (a cycle
// count and a monotonic time taken together).
//
// Thread safety: any thread, async-signal-safe.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "base/clock.h"

namespace cairn {

inline std::uint64_t cycle_count() {
#if defined(__x86_64__)
  return __rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return static_cast<std::uint64_t>(monotonic_ns());
#endif
}

struct CycleAnchor {
  std::uint64_t cycles;
  std::int64_t nanos;

  static CycleAnchor now() { return CycleAnchor{cycle_count(), monotonic_ns()}; }
  // Nanoseconds that `cycles` took, by the rate between the anchor and now.
  std::uint64_t to_nanos(std::uint64_t elapsed_cycles) const {
    const CycleAnchor present = now();
    const std::uint64_t span = present.cycles - cycles;
    if (span == 0) return 0;
    return static_cast<std::uint64_t>(static_cast<double>(elapsed_cycles) *
                                      static_cast<double>(present.nanos - nanos) /
                                      static_cast<double>(span));
  }
};

}  // namespace cairn
