// SPDX-License-Identifier: Apache-2.0
// The clock that files are stamped with, in step with the kernel's.
//
// The kernel stamps files with its coarse clock (a tick, 1 to 4 ms), and since Linux 6.13 with the
// fine one when somebody has looked at the file's times since the last change; a floor keeps the
// coarse stamps that follow from lying before such a fine one. The same is done here: stamps are
// coarse, and never lie before a stamp of the kernel's that this node has seen. So no file's time
// goes back, and what is made from a file is never older than it.
//
// Thread safety: any thread of any process; lives in shared memory, all zeros is a valid clock.
// Source: Documentation/filesystems/multigrain-ts.rst of Linux 6.13.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/atomic_max.h"
#include "base/clock.h"

namespace cairn {

class StampClock {
 public:
  // Nanoseconds since 1970.
  std::int64_t now() const {
    return never_back(floor_.load(std::memory_order_relaxed), wall_clock_coarse_ns());
  }
  // The kernel has given `stamp` to some file.
  void note(std::int64_t stamp) {
    if (stamp <= floor_.load(std::memory_order_relaxed)) return;
    // A time that somebody set into the future is no reading of the clock.
    if (never_back(stamp, wall_clock_coarse_ns()) != stamp) return;
    raise_to(floor_, stamp);
  }

 private:
  std::atomic<std::int64_t> floor_;
};

}  // namespace cairn
