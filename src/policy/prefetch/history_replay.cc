// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/history_replay.h"

#include <algorithm>

#include "base/check.h"
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

// Some reads were left out, or made earlier.
bool HistoryReplay::skip_to(BlockRun run) {
  Position at = stretch_;
  for (unsigned skipped = 0; skipped < kSkippedMax && at != kNowhere; ++skipped) {
    at = history_.after(at);
    if (at == kNowhere || history_.at(at).first != run.first) continue;
    stretch_ = at;
    next_block_ = std::min(run.end(), history_.at(at).end());
    return true;
  }
  return false;
}

// The read was made instead of the one that was expected.
void HistoryReplay::pass_over(BlockRun run) {
  const bool is_inside = next_block_ < history_.at(stretch_).end();
  const Position after = is_inside ? stretch_ : history_.after(stretch_);
  if (after == kNowhere) return;
  stretch_ = after;
  const std::int64_t from = is_inside ? next_block_ : history_.at(after).first;
  next_block_ = std::min(from + run.count, history_.at(after).end());
  if (is_inside || history_.at(after).count != run.count) return;
  CAIRN_DCHECK(exchange_count_ < kSurprisesMax);
  exchanges_[exchange_count_++] = Exchange{after, run};
}

bool HistoryReplay::keep_place(BlockRun run) {
  if (firm_ < kFirmMin || surprises_ >= kSurprisesMax || records_ || next_in_history() < 0)
    return false;
  ++surprises_;
  firm_ -= std::min(firm_, 2U);
  if (skip_to(run)) {
    exchange_count_ = 0;
    elsewhere_ = kNowhere;
    return true;
  }
  elsewhere_ = history_.find(run.first);
  pass_over(run);
  return true;
}

// The stream may as well have gone where the history has the last surprise.
bool HistoryReplay::is_after_elsewhere(BlockRun run) const {
  const Position after = elsewhere_ == kNowhere ? kNowhere : history_.after(elsewhere_);
  return after != kNowhere && history_.at(after).first == run.first;
}

void HistoryReplay::learn_exchanges() {
  for (unsigned at = 0; at < exchange_count_; ++at)
    history_.replace(exchanges_[at].place, exchanges_[at].instead);
  exchange_count_ = 0;
}

void HistoryReplay::look_elsewhere(BlockRun run) {
  // Many ranks may read the same at almost the same time. What the first of them has written
  // goes further than what another has just begun, so that it is kept until it proves wrong.
  if (is_tentative_) writer_.prefer_last();
  // Looked up before it is written, which would find itself.
  stretch_ = history_.find(run.first);
  if (stretch_ != kNowhere) next_block_ = std::min(run.end(), history_.at(stretch_).end());
  records_ = true;
  firm_ = surprises_ = 0;
  exchange_count_ = 0;
  elsewhere_ = kNowhere;
}

void HistoryReplay::observe(BlockRun run) {
  read_blocks_ = std::max(read_blocks_, run.count);
  if (generation_ != history_.generation()) {
    generation_ = history_.generation();
    stretch_ = kNowhere;
    records_ = true;
    is_tentative_ = false;
    firm_ = surprises_ = 0;
    exchange_count_ = 0;
    elsewhere_ = kNowhere;
  }
  const std::int64_t expected = next_in_history();
  agrees_ = expected >= 0 && goes_on_at(run, expected);
  if (!agrees_ && is_after_elsewhere(run)) {
    stretch_ = elsewhere_;
    next_block_ = history_.at(stretch_).end();
    exchange_count_ = 0;
    agrees_ = true;
  }
  agreed_ = agrees_ ? agreed_ + 1 : 0;
  bool is_kept = false;
  if (agrees_) {
    follow(run);
    // Only now: the stream was still in the last of them.
    learn_exchanges();
    elsewhere_ = kNowhere;
    surprises_ = 0;
    firm_ = std::min(firm_ + 1, kFirmMax);
  } else {
    is_kept = keep_place(run);
    if (!is_kept) look_elsewhere(run);
  }
  is_tentative_ = !agrees_ && !is_kept && stretch_ != kNowhere;
  is_kept_ = is_kept;
  if (records_) writer_.append(run);
  using Replay = AccessHistory::Replay;
  history_.note_replay(agrees_         ? Replay::kRight
                       : is_tentative_ ? Replay::kWrong
                                       : Replay::kUnknown);
}

std::size_t HistoryReplay::predict(std::span<BlockRun> next) const {
  if ((!agrees_ && !is_kept_) || generation_ != history_.generation()) return 0;
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
