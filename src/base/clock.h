// SPDX-License-Identifier: Apache-2.0
// The clocks that Cairn uses, through the vDSO: no system call.
//
// Thread safety: any thread, async-signal-safe.
#pragma once

#include <time.h>

#include <cstdint>

namespace cairn {

inline constexpr std::int64_t kNanosPerSecond = 1'000'000'000;

inline std::int64_t to_nanos(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * kNanosPerSecond + time.tv_nsec;
}
inline timespec to_timespec(std::int64_t nanos) {
  std::int64_t seconds = nanos / kNanosPerSecond;
  std::int64_t rest = nanos % kNanosPerSecond;
  if (rest < 0) {  // times before 1970 are legal
    rest += kNanosPerSecond;
    --seconds;
  }
  return timespec{static_cast<time_t>(seconds), static_cast<long>(rest)};
}

// Wall clock at the granularity that the kernel stamps files with (a tick, 1 to 4 ms).
inline std::int64_t wall_clock_coarse_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return to_nanos(now);
}
inline std::int64_t wall_clock_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return to_nanos(now);
}
inline std::int64_t monotonic_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return to_nanos(now);
}
inline double monotonic_seconds() { return static_cast<double>(monotonic_ns()) * 1e-9; }
// The stamp to give at `now` to a file that bears `stamped`. Never back within a few ticks: a fine
// stamp (base/stamp_clock.h) may be a tick ahead of the coarse clock. A time that was set into the
// future does go back.
inline std::int64_t never_back(std::int64_t stamped, std::int64_t now) {
  constexpr std::int64_t kTicksNs = 20'000'000;
  return now < stamped && stamped - now < kTicksNs ? stamped : now;
}
// Milliseconds of the monotonic clock, for ages and recency. Wraps after 49 days: compare with
// elapsed_ms().
inline std::uint32_t monotonic_coarse_ms() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(to_nanos(now)) / 1'000'000);
}
// How long ago `since_ms` was at `now_ms`. Another thread may have stamped it after this one has
// looked at the clock: what is up to a minute ahead was just now, not 49 days ago.
inline std::uint32_t elapsed_ms(std::uint32_t now_ms, std::uint32_t since_ms) {
  constexpr std::uint32_t kAheadMsMax = 60'000;
  const std::uint32_t elapsed = now_ms - since_ms;
  return elapsed < UINT32_MAX - kAheadMsMax ? elapsed : 0;
}

}  // namespace cairn
