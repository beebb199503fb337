// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/delta_path.h"

#include "policy/prefetch/run_writer.h"

namespace cairn {

void DeltaPath::observe(BlockRun run) {
  const std::int64_t delta = last_.count == 0 ? 0 : run.first - last_.first;
  last_ = run;
  if (delta == 0) return;
  if (delta != static_cast<std::int32_t>(delta)) {
    trail_.clear();
    return;
  }
  paths_.learn(trail_, static_cast<std::int32_t>(delta), run.count);
  trail_.push(static_cast<std::int32_t>(delta));
}

std::size_t DeltaPath::predict(std::span<BlockRun> next) const {
  RunWriter writer(next);
  DeltaTrail trail = trail_;
  std::int64_t first = last_.first;
  float confidence = 1;
  while (!writer.is_full()) {
    const DeltaPaths::Step step = paths_.next(trail);
    confidence *= step.share;
    if (confidence < kConfidenceMin) break;
    first += step.delta;
    writer.add(BlockRun{first, step.blocks});
    trail.push(step.delta);
  }
  return writer.count();
}

}  // namespace cairn
