// SPDX-License-Identifier: Apache-2.0
// Turns the cycle counts of events into nanoseconds of the monotonic clock, by the rate between the
// node's start and now. One is made for each batch of events.
//
// Thread safety: a value.
#pragma once

#include "base/cycle_clock.h"

namespace cairn::node {

class EventClock {
 public:
  explicit EventClock(const CycleAnchor& started) : started_(started) {
    const CycleAnchor now = CycleAnchor::now();
    const std::uint64_t cycles = now.cycles - started.cycles;
    if (cycles != 0)
      nanos_per_cycle_ =
          static_cast<double>(now.nanos - started.nanos) / static_cast<double>(cycles);
  }

  std::int64_t nanos(std::uint64_t cycles) const {
    const auto since = static_cast<std::int64_t>(cycles - started_.cycles);
    return started_.nanos +
           static_cast<std::int64_t>(static_cast<double>(since) * nanos_per_cycle_);
  }

  // How long so many cycles take.
  std::uint64_t duration_ns(std::uint64_t cycles) const {
    return static_cast<std::uint64_t>(static_cast<double>(cycles) * nanos_per_cycle_);
  }

 private:
  CycleAnchor started_;
  double nanos_per_cycle_ = 1;
};

}  // namespace cairn::node
