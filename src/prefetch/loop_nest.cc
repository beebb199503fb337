// SPDX-License-Identifier: Apache-2.0
#include "prefetch/loop_nest.h"

#include <algorithm>

#include "prefetch/run_writer.h"

namespace cairn {

unsigned LoopNest::level_of(std::int64_t delta) {
  for (unsigned level = 0; level < levels_; ++level) {
    if (level_[level].delta == delta) return level;
  }
  if (levels_ == kLevelsMax) levels_ = 0;
  level_[levels_] = Level{delta, 1, kUnbounded};
  steps_[levels_] = 0;
  trust_ = 0;
  return levels_++;
}

unsigned LoopNest::next_level(const Steps& steps) const {
  unsigned level = 0;
  while (level < levels_ && steps[level] >= level_[level].bound) ++level;
  return level;
}

void LoopNest::observe(BlockRun run) {
  const std::int64_t delta = last_.count == 0 ? 0 : run.first - last_.first;
  last_ = run;
  if (delta == 0) return;
  const unsigned stepped = level_of(delta);
  trust_ =
      delta == delta_expected_ ? std::min(kTrustMax, trust_ + 1) : std::max(-kTrustMax, trust_ - 1);
  for (unsigned inner = 0; inner < stepped; ++inner) {
    level_[inner].bound = steps_[inner];
    steps_[inner] = 0;
  }
  ++steps_[stepped];
  level_[stepped].blocks = run.count;
  const unsigned next = next_level(steps_);
  delta_expected_ = next < levels_ ? level_[next].delta : 0;
}

std::size_t LoopNest::predict(std::span<BlockRun> next) const {
  if (levels_ == 0 || trust_ < 0) return 0;
  RunWriter writer(next);
  Steps steps = steps_;
  std::int64_t first = last_.first;
  while (!writer.is_full()) {
    const unsigned level = next_level(steps);
    if (level == levels_) break;
    std::fill_n(steps.begin(), level, 0U);
    ++steps[level];
    first += level_[level].delta;
    writer.add(BlockRun{first, level_[level].blocks});
  }
  return writer.count();
}

}  // namespace cairn
