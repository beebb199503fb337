// SPDX-License-Identifier: Apache-2.0
// Whether a file's times tell its next change from its last one.
//
// Thread safety: a pure function. Units: nanoseconds of the wall clock.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace cairn {

// A file system may not tell two changes apart that follow each other sooner. (Ticks of the
// kernel's clock are 10 ms at most; FAT and some servers keep whole seconds, whose times show it.)
inline constexpr std::int64_t kChangeTickNs = 50'000'000;

// Whether a change at `now_ns`, or later, would leave other times.
constexpr bool have_settled(std::int64_t mtime_ns, std::int64_t ctime_ns, std::int64_t now_ns) {
  const bool has_whole_seconds = mtime_ns % kNanosPerSecond == 0;
  const std::int64_t tick = has_whole_seconds ? 2 * kNanosPerSecond : kChangeTickNs;
  return std::max(mtime_ns, ctime_ns) + tick < now_ns;
}

}  // namespace cairn
