// SPDX-License-Identifier: Apache-2.0
// The modification time that the backing file bears while data of it is still on its way.
//
// A copy that somebody outside the run takes now has old bytes or zeros. It must be recognisable as
// old once the data is there, by programs that compare times: rsync by the second, others by the
// two seconds that FAT tells apart; `rsync -u`, `cp -u` and make refresh only what became newer. So
// the store bears a time that is a little older than the file's own: by an even number of seconds,
// so that coarse file systems round both alike.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace cairn {

inline constexpr std::int64_t kUnfinishedLagNs = 4 * kNanosPerSecond;

constexpr std::int64_t unfinished_time(std::int64_t mtime_ns) {
  // Not every file system has times before 1970, and tools set files to the first second of it.
  const bool is_first = mtime_ns >= 0 && mtime_ns < kUnfinishedLagNs;
  return is_first ? mtime_ns + kUnfinishedLagNs : mtime_ns - kUnfinishedLagNs;
}

// A file that has not been touched yet bears the time of its old bytes, which may stay.
constexpr bool is_clearly_before(std::int64_t stored_ns, std::int64_t mtime_ns) {
  return stored_ns <= mtime_ns - kUnfinishedLagNs;
}

}  // namespace cairn
