// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/stream_hints.h"

#include <algorithm>

namespace cairn {

void StreamHints::declare(DeclaredOrder order) {
  order_ = std::move(order);
  is_order_refuted_ = false;
}

void StreamHints::will_need(BlockRun range) {
  if (range.count == 0) return;
  if (wanted_count_ == kRangesMax) {
    std::copy(wanted_.begin() + 1, wanted_.end(), wanted_.begin());
    --wanted_count_;
  }
  wanted_[wanted_count_++] = range;
}

std::size_t StreamHints::take_wanted(std::span<BlockRun> ranges, std::uint32_t blocks_max) {
  std::size_t taken = 0;
  unsigned emptied = 0;
  while (emptied < wanted_count_ && taken < ranges.size() && blocks_max > 0) {
    BlockRun& range = wanted_[emptied];
    const std::uint32_t blocks = std::min(range.count, blocks_max);
    ranges[taken++] = BlockRun{range.first, blocks};
    blocks_max -= blocks;
    range = BlockRun{range.first + blocks, range.count - blocks};
    if (range.count == 0) ++emptied;
  }
  std::copy(wanted_.begin() + emptied, wanted_.begin() + wanted_count_, wanted_.begin());
  wanted_count_ -= emptied;
  return taken;
}

// Only what is read from the front shortens a range: a reader in its middle may come back for the
// rest, and to fetch a block that is there already costs nothing.
void StreamHints::observe(BlockRun run) {
  unsigned kept = 0;
  for (unsigned at = 0; at < wanted_count_; ++at) {
    BlockRun range = wanted_[at];
    if (run.first <= range.first && run.end() > range.first) {
      const std::int64_t end = std::max(range.end(), run.end());
      range = BlockRun{run.end(), static_cast<std::uint32_t>(end - run.end())};
    }
    if (range.count != 0) wanted_[kept++] = range;
  }
  wanted_count_ = kept;
}

}  // namespace cairn
