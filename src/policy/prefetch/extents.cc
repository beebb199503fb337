// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/extents.h"

#include <algorithm>

#include "base/check.h"
#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {

std::size_t Extents::place_of(std::int64_t length) {
  CAIRN_DCHECK(length > 0);
  return static_cast<std::size_t>(std::min(length, kLengths) - 1);
}

void Extents::count_reached(std::int64_t from, std::int64_t to) {
  // Beyond the longest there is but one place.
  for (std::int64_t length = from; length <= std::min(to, kLengths); ++length)
    ++reached_[place_of(length)];
  blocks_reached_ += static_cast<float>(std::min(to, kLengths) - std::min(from, kLengths) + 1);
}

void Extents::end_extent() {
  if (end_ <= first_) return;
  const std::size_t place = place_of(end_ - first_);
  ++ended_[place];
  ++blocks_ended_;
  ++extents_;
  if (reached_[0] < kTimesMax) return;
  // The latest habits win.
  for (std::uint16_t& times : reached_) times /= 2;
  for (std::uint16_t& times : ended_) times /= 2;
  blocks_reached_ /= 2;
  blocks_ended_ /= 2;
}

void Extents::observe(BlockRun run) {
  read_blocks_ = run.count;
  if (end_ > first_ && goes_on_at(run, end_)) {
    count_reached(end_ - first_ + 1, run.end() - first_);
    end_ = run.end();
    return;
  }
  end_extent();
  first_ = run.first;
  end_ = run.end();
  count_reached(1, run.count);
  const AccessHistory::Position known = history_.find(first_);
  const bool is_longer = known != AccessHistory::kNowhere && history_.at(known).end() > end_;
  known_end_ = is_longer ? history_.at(known).end() : -1;
}

float Extents::hazard(std::int64_t length) const {
  const std::size_t place = place_of(length);
  const float mean = blocks_ended_ / std::max(1.0F, blocks_reached_);
  return (static_cast<float>(ended_[place]) + kPriorReads * mean) /
         (static_cast<float>(reached_[place]) + kPriorReads);
}

std::size_t Extents::predict(std::span<BlockRun> next) const {
  if (!knows_ends()) return 0;
  RunWriter writer(next);
  float confidence = 1;
  for (std::int64_t block = end_; !writer.is_full(); block += read_blocks_) {
    if (known_end_ >= end_) {
      if (block >= known_end_) break;
    } else {
      confidence *= 1 - hazard(block - first_);
      if (confidence < kConfidenceMin || history_.find(block) != AccessHistory::kNowhere) break;
    }
    writer.add(BlockRun{block, read_blocks_});
  }
  return writer.count();
}

}  // namespace cairn
