// SPDX-License-Identifier: Apache-2.0
// When a node that nobody wants tries again to end, after something could not be stored.
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace cairn::node {

class DeferredEnd {
 public:
  // For poll(): negative until something happens.
  int wait_ms() const {
    if (at_ns_ == 0) return -1;
    return static_cast<int>(std::max<std::int64_t>(0, (at_ns_ - monotonic_ns()) / 1'000'000));
  }
  void forget() { at_ns_ = 0; }
  // Returns whether it is to be said: less and less often.
  bool put_off() {
    const bool is_to_be_said = pause_ms_ < kPauseMsMax;
    pause_ms_ = pause_ms_ == 0 ? kPauseMsMin : std::min(2 * pause_ms_, kPauseMsMax);
    at_ns_ = monotonic_ns() + pause_ms_ * std::int64_t{1'000'000};
    return is_to_be_said;
  }

 private:
  static constexpr int kPauseMsMin = 1000;
  static constexpr int kPauseMsMax = 60'000;
  int pause_ms_ = 0;
  std::int64_t at_ns_ = 0;
};

}  // namespace cairn::node
