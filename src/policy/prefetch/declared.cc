// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/declared.h"

#include <algorithm>

#include "policy/prefetch/run_writer.h"

namespace cairn {

bool Declared::follow_order() {
  if (order_ != hints_.order()) {
    order_ = hints_.order();
    at_ = 0;
    consumed_ = 0;
    mismatches_ = 0;
    doubt_ = 0;
  }
  return order_ != nullptr && !hints_.is_order_refuted();
}

// Moves on behind the blocks of the read, which may be several of the runs.
void Declared::pass(BlockRun run) {
  std::int64_t block = run.first;
  while (at_ < order_->size() && block < run.end()) {
    const BlockRun& declared = (*order_)[at_];
    if (declared.first + consumed_ != block) return;
    const std::int64_t end = std::min(declared.end(), run.end());
    consumed_ += static_cast<std::uint32_t>(end - block);
    block = end;
    if (consumed_ < declared.count) return;
    consumed_ = 0;
    ++at_;
  }
}

void Declared::observe(BlockRun run) {
  if (!follow_order()) return;
  const std::size_t end = std::min(order_->size(), at_ + kSkipsMax + 1);
  for (std::size_t at = at_; at < end; ++at) {
    const std::uint32_t consumed = at == at_ ? consumed_ : 0;
    const BlockRun& declared = (*order_)[at];
    // A part of a run may have been left out as well.
    if (run.first < declared.first + consumed || run.first >= declared.end()) continue;
    at_ = at;
    consumed_ = static_cast<std::uint32_t>(run.first - declared.first);
    pass(run);
    doubt_ -= std::min(doubt_, 1U);
    return;
  }
  ++mismatches_;
  doubt_ += kReadsPerMismatch;
  if (doubt_ >= kMismatchesMax * kReadsPerMismatch) hints_.refute_order();
}

std::size_t Declared::predict(std::span<BlockRun> next) const {
  if (hints_.order() == nullptr || hints_.is_order_refuted()) return 0;
  // A new order is read from its beginning, of which observe() has not heard yet.
  const bool is_new = order_ != hints_.order();
  const std::vector<BlockRun>& order = *hints_.order();
  std::uint32_t consumed = is_new ? 0 : consumed_;
  RunWriter writer(next);
  for (std::size_t at = is_new ? 0 : at_; at < order.size() && !writer.is_full(); ++at) {
    if (order[at].count > consumed)
      writer.add(BlockRun{order[at].first + consumed, order[at].count - consumed});
    consumed = 0;
  }
  return writer.count();
}

}  // namespace cairn
