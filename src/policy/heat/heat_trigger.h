// SPDX-License-Identifier: Apache-2.0
// When segments are placed anew: after so many changed scores, or an interval after the last time
// if any score has changed since (Kougkas, Devarajan, Sun: JCST 35(1), 2020, section 3.3).
//
// Thread safety: none.
#pragma once

#include <cstdint>

namespace cairn {

class HeatTrigger {
 public:
  struct Limits {
    std::int64_t interval_ns = 1'000'000'000;
    std::uint64_t changes_max = 100;
  };

  HeatTrigger(const Limits& limits, std::int64_t now_ns) : limits_(limits), last_ns_(now_ns) {}

  void note_changes(std::uint64_t count) { changes_ += count; }

  bool is_due(std::int64_t now_ns) const {
    if (changes_ == 0) return false;
    return changes_ >= limits_.changes_max || now_ns - last_ns_ >= limits_.interval_ns;
  }

  // Whatever changed so far has been dealt with.
  void reset(std::int64_t now_ns) {
    last_ns_ = now_ns;
    changes_ = 0;
  }

 private:
  Limits limits_;
  std::int64_t last_ns_;
  std::uint64_t changes_ = 0;
};

}  // namespace cairn
