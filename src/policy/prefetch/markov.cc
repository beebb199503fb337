// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/markov.h"

#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {

void Markov::observe(BlockRun run) {
  const bool goes_on = segment_.blocks != 0 && goes_on_at(run, segment_.first + segment_.blocks);
  if (goes_on && run.end() - segment_.first <= UINT32_MAX) {
    segment_.blocks = static_cast<std::uint32_t>(run.end() - segment_.first);
    return;
  }
  if (segment_.blocks != 0) {
    was_right_ = chain_.likely_after(segment_.first).first == run.first;
    chain_.learn(segment_, run.first);
  }
  segment_ = SegmentChain::Segment{run.first, run.count, run.count};
}

std::size_t Markov::predict(std::span<BlockRun> next) const {
  if (!was_right_) return 0;
  RunWriter writer(next);
  std::int64_t segment = segment_.first;
  std::int64_t from = segment + segment_.blocks;
  std::uint32_t read_blocks = segment_.read_blocks;
  float confidence = 1;
  while (!writer.is_full()) {
    const SegmentChain::Segment known = chain_.segment_at(segment);
    if (known.blocks == 0) break;
    read_blocks = known.read_blocks;
    writer.add_stretch(from, segment + known.blocks, read_blocks);
    const SegmentChain::Follower follower = chain_.likely_after(segment);
    confidence *= follower.share;
    if (confidence < kConfidenceMin) break;
    segment = from = follower.first;
    // The last segment of the path may be known by its beginning alone.
    if (chain_.segment_at(segment).blocks == 0) writer.add(BlockRun{segment, read_blocks});
  }
  return writer.count();
}

}  // namespace cairn
