// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/history_replay.h"

#include <algorithm>

#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {

std::int64_t HistoryReplay::next_in_history() const {
  if (stretch_ == kNowhere) return -1;
  if (next_block_ < history_.at(stretch_).end()) return next_block_;
  const Position after = history_.after(stretch_);
  return after == kNowhere ? -1 : history_.at(after).first;
}

void HistoryReplay::follow(BlockRun run) {
  if (next_block_ >= history_.at(stretch_).end()) {
    stretch_ = history_.after(stretch_);
    // Only from the beginning of a stretch can the record be joined to what is there already.
    if (records_) writer_.go_on_at(stretch_);
    records_ = false;
  }
  next_block_ = std::min(run.end(), history_.at(stretch_).end());
}

void HistoryReplay::observe(BlockRun run) {
  read_blocks_ = std::max(read_blocks_, run.count);
  if (generation_ != history_.generation()) {
    generation_ = history_.generation();
    stretch_ = kNowhere;
    records_ = true;
    is_tentative_ = false;
  }
  const std::int64_t expected = next_in_history();
  agrees_ = expected >= 0 && goes_on_at(run, expected);
  agreed_ = agrees_ ? agreed_ + 1 : 0;
  if (agrees_) {
    follow(run);
  } else {
    // Many ranks may read the same at almost the same time. What the first of them has written
    // goes further than what another has just begun, so that it is kept until it proves wrong.
    if (is_tentative_) writer_.prefer_last();
    // Looked up before it is written, which would find itself.
    stretch_ = history_.find(run.first);
    if (stretch_ != kNowhere) next_block_ = std::min(run.end(), history_.at(stretch_).end());
    records_ = true;
  }
  is_tentative_ = !agrees_ && stretch_ != kNowhere;
  if (records_) writer_.append(run);
  using Replay = AccessHistory::Replay;
  history_.note_replay(agrees_         ? Replay::kRight
                       : is_tentative_ ? Replay::kWrong
                                       : Replay::kUnknown);
}

std::size_t HistoryReplay::predict(std::span<BlockRun> next) const {
  if (!agrees_ || generation_ != history_.generation()) return 0;
  RunWriter writer(next);
  std::int64_t first = next_block_;
  for (Position stretch = stretch_; stretch != kNowhere && !writer.is_full();) {
    writer.add_stretch(first, history_.at(stretch).end(), read_blocks_);
    stretch = history_.after(stretch);
    if (stretch != kNowhere) first = history_.at(stretch).first;
  }
  return writer.count();
}

RepeatedOrder HistoryReplay::repeated() const {
  const bool is_known = agreed_ >= kAgreedMin && generation_ == history_.generation();
  return is_known && stretch_ != kNowhere ? history_.lap_through(stretch_) : RepeatedOrder{};
}

}  // namespace cairn
