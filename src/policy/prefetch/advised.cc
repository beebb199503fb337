// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/advised.h"

#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {

void Advised::observe(BlockRun run) {
  const bool jumps = last_.count != 0 && !goes_on_at(run, last_.end());
  jumps_ = jumps ? jumps_ + 1 : 0;
  last_ = run;
}

std::size_t Advised::predict(std::span<BlockRun> next) const {
  if (hints_.advice() != AccessAdvice::kSequential) return 0;
  if (last_.count == 0 || jumps_ >= kJumpsMax) return 0;
  RunWriter writer(next);
  for (std::int64_t first = last_.end(); !writer.is_full(); first += last_.count)
    writer.add(BlockRun{first, last_.count});
  return writer.count();
}

}  // namespace cairn
