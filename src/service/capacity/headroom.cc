// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/headroom.h"

#include "base/check.h"

namespace cairn::node {

namespace {

// A client that leaves takes its counters along.
std::uint64_t growth(std::uint64_t before, std::uint64_t now) {
  return now > before ? now - before : 0;
}

}  // namespace

void Headroom::observe(std::int64_t now_ms, std::uint64_t consumed, std::uint64_t written) {
  // An overwrite needs no room, and a block that was read is not written.
  const std::uint64_t fresh = std::min(growth(consumed_, consumed), growth(written_, written));
  const bool goes_on = written > written_;
  consumed_ = consumed;
  written_ = written;
  if (goes_on) {
    in_burst_ = true;
    is_due_ = false;
    last_ms_ = now_ms;
    burst_ += fresh;
  } else if (in_burst_ && now_ms - last_ms_ >= kPauseMs) {
    end_burst();
  }
}

void Headroom::end_burst() {
  CAIRN_CHECK(in_burst_);
  in_burst_ = false;
  const auto size = static_cast<std::uint32_t>(std::min<std::uint64_t>(burst_, most_));
  burst_ = 0;
  if (size == 0) return;
  // Quick to grow, slow to shrink: a small file between two checkpoints is not the next checkpoint.
  expected_ = std::max(size, expected_ - expected_ / 8);
  bursts_ = std::min(bursts_ + 1, 2U);
  CAIRN_CHECK(expected_ <= most_);
  is_due_ = true;
}

}  // namespace cairn::node
