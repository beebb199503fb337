// SPDX-License-Identifier: Apache-2.0
// How much of a tier should be free before a program writes again. Programs that compute and write
// in turns (checkpoints, time steps) write about as much each time. If that room is made while they
// compute, the tier takes the next burst at its own speed, not at the speed of the blocks that
// leave.
//
// A burst is what is written to new blocks until nobody has written for kPauseMs. From the second
// one on as much is made free after each as the larger of the recent ones took, at most half of the
// tier: the rest stays a cache. Once per burst: what is read into that room meanwhile may stay, and
// blocks that are placed by reading are no reason to make any.
//
// Thread safety: none. Ownership: values.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cairn::node {

class Headroom {
 public:
  static constexpr std::int64_t kPauseMs = 40;

  explicit Headroom(std::uint32_t slabs) : most_(slabs / 2) {}

  // `consumed`: slabs that clients have taken so far; `written`: slabs' worth of data that they
  // have written so far.
  void observe(std::int64_t now_ms, std::uint64_t consumed, std::uint64_t written);
  // Somebody was writing at the last look: look again after kPauseMs.
  bool is_in_burst() const { return in_burst_; }
  // Slabs that should be free now, said once after each burst; 0 otherwise, or while no further one
  // is expected.
  std::uint32_t take_wanted() {
    const std::uint32_t wanted = is_due_ && bursts_ >= 2 ? std::min(expected_, most_) : 0;
    is_due_ = false;
    return wanted;
  }

 private:
  void end_burst();

  const std::uint32_t most_;
  std::uint64_t consumed_ = 0;
  std::uint64_t written_ = 0;
  std::int64_t last_ms_ = 0;  // when the burst was last seen to go on
  std::uint64_t burst_ = 0;   // slabs of the burst under way
  std::uint32_t expected_ = 0;
  std::uint32_t bursts_ = 0;
  bool in_burst_ = false;
  bool is_due_ = false;  // a burst has ended, and nobody has asked what that means
};

}  // namespace cairn::node
