// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/file_heat.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn {
namespace {

// The part of the weight of all older references that is left when an epoch begins.
constexpr double kWeightLeft = 0.5;

// Where a range ends, without going beyond the offsets there are.
std::uint64_t end_of(const HeatRange& range) {
  if (range.offset >= kOffsetMax) return kOffsetMax;
  return range.offset + std::min(range.bytes, kOffsetMax - range.offset);
}

}  // namespace

bool FileHeat::restore(State state) {
  if (openers_ > 0 || !(state.pace == pace_) || state.segment_shift > kSegmentShiftMax ||
      state.scores.size() > kSegmentsMax) {
    return false;
  }
  segment_shift_ = state.segment_shift;
  file_bytes_ = std::min(state.file_bytes, kOffsetMax);
  closed_ns_ = state.closed_ns;
  epochs_ = state.epochs;
  segments_.clear();
  segments_.resize(state.scores.size());
  for (std::size_t at = 0; at < segments_.size(); ++at) {
    segments_[at].score = state.scores[at];
    segments_[at].is_changed = !state.scores[at].is_cold();
  }
  cover(file_bytes_);
  return true;
}

FileHeat::State FileHeat::state() const {
  const std::int64_t closed_ns = openers_ > 0 ? latest_ns_ : closed_ns_;
  State state{pace_, file_bytes_, closed_ns, epochs_, segment_shift_, {}};
  state.scores.reserve(segments_.size());
  for (const Segment& segment : segments_) state.scores.push_back(segment.score);
  return state;
}

void FileHeat::open(std::int64_t now_ns, std::uint32_t count) {
  if (count == 0) return;
  if (openers_ == 0) {
    const double stood = pace_.steps(now_ns) - pace_.steps(closed_ns_);
    for (Segment& segment : segments_) {
      segment.score.shift(stood);
      segment.score.weaken(kWeightLeft);
    }
    ++epochs_;
    latest_ns_ = now_ns;
  }
  latest_ns_ = std::max(latest_ns_, now_ns);
  openers_ += count;
}

bool FileHeat::close(std::int64_t now_ns, std::uint32_t count) {
  if (openers_ == 0 || count == 0) return false;
  latest_ns_ = std::max(latest_ns_, now_ns);
  openers_ -= std::min(openers_, count);
  if (openers_ > 0) return false;
  closed_ns_ = now_ns;
  return true;
}

void FileHeat::access(const HeatRange& range, std::int64_t now_ns) {
  const Numbers touched = touch(range);
  const double time = time_at(now_ns);
  latest_ns_ = std::max(latest_ns_, now_ns);
  for (std::uint32_t number = touched.first; number < touched.end; ++number) {
    segments_[number].score.add(time, pace_.decay);
    segments_[number].is_changed = true;
  }
}

void FileHeat::resize(std::uint64_t file_bytes) {
  file_bytes_ = std::min(file_bytes, kOffsetMax);
  cover(file_bytes_);
  const std::uint64_t needed = (file_bytes_ + segment_bytes() - 1) / segment_bytes();
  if (needed < segments_.size()) segments_.resize(needed);
}

void FileHeat::mark_fetched(const HeatRange& range) {
  const Numbers touched = touch(range);
  for (std::uint32_t number = touched.first; number < touched.end; ++number)
    segments_[number].is_fetched = true;
}

std::vector<HeatRange> FileHeat::update(const HeatRange& range) {
  std::vector<HeatRange> stale;
  // Clipped first: the file may be far longer than what was touched of it.
  const std::uint64_t end = std::min(end_of(range), segment_count() * segment_bytes());
  if (range.offset >= end) return stale;
  const std::uint32_t last = segment_of(end - 1);
  for (std::uint32_t number = segment_of(range.offset); number <= last; ++number) {
    if (!std::exchange(segments_[number].is_fetched, false)) continue;
    const HeatRange its = range_of(number);
    if (!stale.empty() && stale.back().offset + stale.back().bytes == its.offset) {
      stale.back().bytes += its.bytes;
    } else {
      stale.push_back(its);
    }
  }
  return stale;
}

std::vector<std::uint32_t> FileHeat::take_changed() {
  std::vector<std::uint32_t> changed;
  for (std::uint32_t number = 0; number < segment_count(); ++number) {
    if (std::exchange(segments_[number].is_changed, false)) changed.push_back(number);
  }
  return changed;
}

std::size_t FileHeat::memory_bytes() const {
  return sizeof(*this) + segments_.capacity() * sizeof(Segment);
}

FileHeat::Numbers FileHeat::touch(const HeatRange& range) {
  const std::uint64_t end = end_of(range);
  if (range.offset >= end) return {};
  file_bytes_ = std::max(file_bytes_, end);
  cover(end);
  const Numbers touched{segment_of(range.offset), segment_of(end - 1) + 1};
  if (touched.end > segments_.size()) {
    // As a vector grows by itself, but never to more than there can be.
    if (touched.end > segments_.capacity()) {
      segments_.reserve(std::min<std::size_t>(
          kSegmentsMax, std::max<std::size_t>(touched.end, 2 * segments_.capacity())));
    }
    segments_.resize(touched.end);
  }
  return touched;
}

void FileHeat::cover(std::uint64_t end_offset) {
  while (end_offset > kSegmentsMax * segment_bytes()) double_segments();
}

void FileHeat::double_segments() {
  const std::size_t pairs = (segments_.size() + 1) / 2;
  for (std::size_t at = 0; at < pairs; ++at) {
    Segment both = segments_[2 * at];
    if (2 * at + 1 < segments_.size()) {
      const Segment& other = segments_[2 * at + 1];
      both.score.merge(other.score, pace_.decay);
      // Rather too much is dropped after an update than too little.
      both.is_fetched |= other.is_fetched;
    }
    // The number means other data now.
    both.is_changed = !both.score.is_cold();
    segments_[at] = both;
  }
  segments_.resize(pairs);
  ++segment_shift_;
  CAIRN_CHECK(segment_shift_ <= kSegmentShiftMax);
}

}  // namespace cairn
