// SPDX-License-Identifier: Apache-2.0
#include "service/plugins/forecast.h"

#include <algorithm>
#include <utility>

namespace cairn {
namespace {

bool overlap(const BlockRun& left, const BlockRun& right) {
  return left.first < right.end() && right.first < left.end();
}

}  // namespace

void Forecast::begin(std::vector<BlockRun> runs) {
  runs_ = std::move(runs);
  at_ = 0;
  hits_ = 0;
  misses_ = 0;
}

void Forecast::pass(BlockRun run) {
  const std::size_t end = std::min(runs_.size(), at_ + kSkipsMax + 1);
  for (std::size_t at = at_; at < end; ++at) {
    if (!overlap(runs_[at], run)) continue;
    at_ = at;
    move_behind(run);
    ++hits_;
    return;
  }
  ++misses_;
}

// A long read may take several of the runs, a short one a part of one.
void Forecast::move_behind(BlockRun run) {
  for (; at_ < runs_.size() && overlap(runs_[at_], run); ++at_) {
    BlockRun& next = runs_[at_];
    if (next.end() <= run.end()) continue;
    next = BlockRun{run.end(), static_cast<std::uint32_t>(next.end() - run.end())};
    return;
  }
}

std::size_t Forecast::copy(std::span<BlockRun> next) const {
  const std::size_t count = std::min(next.size(), left());
  std::copy_n(runs_.begin() + static_cast<std::ptrdiff_t>(at_), count, next.begin());
  return count;
}

}  // namespace cairn
