// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/stride.h"

#include "policy/prefetch/run_writer.h"

namespace cairn {

void Stride::observe(BlockRun run) {
  const std::int64_t delta = last_.count == 0 ? 0 : run.first - last_.first;
  is_armed_ = delta != 0 && delta == delta_;
  delta_ = delta;
  last_ = run;
}

std::size_t Stride::predict(std::span<BlockRun> next) const {
  if (!is_armed_) return 0;
  RunWriter writer(next);
  for (std::int64_t first = last_.first + delta_; !writer.is_full(); first += delta_)
    writer.add(BlockRun{first, last_.count});
  return writer.count();
}

}  // namespace cairn
