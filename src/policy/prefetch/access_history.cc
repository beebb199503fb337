// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/access_history.h"

#include <algorithm>

#include "base/check.h"
#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/mixed_bits.h"

namespace cairn {

AccessHistory::Position AccessHistory::find(std::int64_t first) const {
  if (index_.empty()) return kNowhere;
  const std::size_t mask = index_.size() - 1;
  for (std::size_t slot = mixed_bits(static_cast<std::uint64_t>(first)) & mask;
       index_[slot] != kNowhere; slot = (slot + 1) & mask) {
    if (entries_[index_[slot]].first == first) return index_[slot];
  }
  return kNowhere;
}

AccessHistory::Position AccessHistory::after(Position position) const {
  ++position;
  if (position < entries_.size() && entries_[position].count == 0) {
    const std::int64_t on = entries_[position].first;
    position = on < 0 ? kNowhere : static_cast<Position>(on);
  }
  return position < entries_.size() && entries_[position].count != 0 ? position : kNowhere;
}

RepeatedOrder AccessHistory::lap_from(Position first, Position seen) const {
  RepeatedOrder lap;
  bool was_seen = false;
  Position position = first;
  do {
    if (position == seen && !was_seen) {
      lap.at = lap.runs.size();
      was_seen = true;
    }
    lap.runs.push_back(entries_[position]);
    position = after(position);
    // Links may lead into a circle that does not come by the first stretch again.
  } while (position != kNowhere && entries_[position].first != entries_[first].first &&
           lap.runs.size() < entries_.size());
  if (!was_seen) lap.runs.clear();
  return lap;
}

RepeatedOrder AccessHistory::lap_through(Position position) const {
  RepeatedOrder lap = lap_from(0, position);
  return lap.runs.empty() ? lap_from(position, position) : lap;
}

void AccessHistory::add_to_index(Position position) {
  CAIRN_DCHECK(position < entries_.size() && 2 * entries_.size() <= index_.size());
  const std::size_t mask = index_.size() - 1;
  const std::int64_t first = entries_[position].first;
  std::size_t slot = mixed_bits(static_cast<std::uint64_t>(first)) & mask;
  while (index_[slot] != kNowhere && entries_[index_[slot]].first != first)
    slot = (slot + 1) & mask;
  index_[slot] = position;
}

bool AccessHistory::grow(std::size_t entries) {
  if (entries <= entries_.capacity()) return true;
  if (entries > entries_max_) return false;
  std::size_t capacity = std::max(kEntriesFirst, entries_.capacity());
  while (capacity < entries) capacity *= 2;
  const std::size_t bytes = capacity * kBytesPerEntry;
  if (!budget_.reserve(bytes - bytes_)) return false;
  bytes_ = bytes;
  entries_.reserve(capacity);
  // An entry for each place, were they all stretches, leaves half of the index free.
  index_.resize(2 * capacity);
  index_all();
  return true;
}

void AccessHistory::index_all() {
  std::fill(index_.begin(), index_.end(), kNowhere);
  replaced_ = 0;
  for (Position position = 0; position < entries_.size(); ++position) {
    if (entries_[position].count != 0) add_to_index(position);
  }
}

// The place of the old one in the index stays, and finds nothing: a quarter of the index may be
// such places before it is built anew.
void AccessHistory::replace(Position position, BlockRun run) {
  CAIRN_CHECK(position < entries_.size() && entries_[position].count != 0 && run.count != 0);
  entries_[position] = run;
  if (++replaced_ > index_.size() / 4) index_all();
  add_to_index(position);
}

AccessHistory::Position AccessHistory::reserve(std::uint32_t places) {
  const std::size_t first = entries_.size();
  if (is_full_ || !grow(first + places)) {
    if (!is_full_) reads_ = replays_ = misses_ = 0;
    is_full_ = true;
    return kNowhere;
  }
  entries_.resize(first + places, kEnd);
  return static_cast<Position>(first);
}

// In an epoch four times as long as the history, a quarter of the reads are replayed. A full
// history of less use is from a time when the file was read differently. The misses of one that
// grows are the reads that it records twice: half of it, with nothing replayed and nothing new, is
// no order. (In one that comes back to a header again and again, the reads between are new.)
void AccessHistory::note_replay(Replay replay) {
  ++reads_;
  replays_ += replay == Replay::kRight ? 1 : 0;
  misses_ += replay == Replay::kWrong ? 1 : 0;
  const std::uint64_t known = replays_ + misses_;
  const bool is_time = is_full_ ? reads_ >= 4 * entries_.size()
                                : known >= std::max<std::uint64_t>(kMissesMin, stretches_ / 2);
  if (!is_time) return;
  const bool is_of_use = is_full_ ? replays_ * 10 >= reads_ : misses_ * 10 < reads_ * 9;
  reads_ = replays_ = misses_ = 0;
  if (!is_of_use) forget();
}

void AccessHistory::forget() {
  std::vector<BlockRun>().swap(entries_);
  std::vector<Position>().swap(index_);
  budget_.release(bytes_);
  bytes_ = 0;
  replaced_ = 0;
  stretches_ = 0;
  reads_ = replays_ = misses_ = 0;
  is_full_ = false;
  ++generation_;
}

bool AccessHistory::restore(const std::vector<BlockRun>& entries) {
  forget();
  if (!grow(entries.size())) return false;
  for (BlockRun entry : entries) {
    const bool is_link = entry.count == 0 && entry.first >= 0 &&
                         entry.first < static_cast<std::int64_t>(entries.size());
    const bool is_stretch = entry.count != 0 && entry.first >= 0;
    entries_.push_back(is_link || is_stretch ? entry : kEnd);
    if (!is_stretch) continue;
    add_to_index(static_cast<Position>(entries_.size() - 1));
    ++stretches_;
  }
  return true;
}

// The last place is kept for the link to the next ones, unless these adjoin.
bool HistoryWriter::reserve_place() {
  if (next_ + 1 < end_) return true;
  const bool is_at_end = end_ != 0 && end_ == history_.entries_.size();
  const AccessHistory::Position reserved = history_.reserve(places_);
  if (reserved == AccessHistory::kNowhere) return false;
  end_ = reserved + places_;
  places_ = std::min(2 * places_, kPlacesMax);
  if (is_at_end) return true;
  if (is_open_) history_.entries_[next_] = BlockRun{reserved, 0};
  next_ = reserved;
  return true;
}

void HistoryWriter::append(BlockRun run) {
  if (generation_ != history_.generation()) {
    generation_ = history_.generation();
    next_ = end_ = 0;
    is_open_ = false;
  }
  if (is_open_) {
    BlockRun& last = history_.entries_[last_];
    if (goes_on_at(run, last.end()) && run.end() - last.first <= kStretchMax) {
      last.count = static_cast<std::uint32_t>(run.end() - last.first);
      return;
    }
  }
  if (!reserve_place()) {
    is_open_ = false;
    return;
  }
  history_.entries_[next_] = run;
  ++history_.stretches_;
  if (history_.find(run.first) == AccessHistory::kNowhere) history_.add_to_index(next_);
  last_ = next_++;
  is_open_ = true;
}

void HistoryWriter::prefer_last() {
  if (is_open_ && generation_ == history_.generation()) history_.add_to_index(last_);
}

void HistoryWriter::go_on_at(AccessHistory::Position position) {
  if (!is_open_ || generation_ != history_.generation()) return;
  history_.entries_[next_++] = BlockRun{position, 0};
  is_open_ = false;
}

}  // namespace cairn
