// SPDX-License-Identifier: Apache-2.0
// The heat map of one file: a score (policy/heat/heat_score.h) for each of its segments, over the
// epochs in which it is open (Kougkas, Devarajan, Sun: JCST 35(1), 2020, section 3.3).
//
// A segment is a run of 2^k blocks. k grows with the file so that there are never more than
// kSegmentsMax of them; neighbours then become one, with the accesses of both (one that touched
// both counts twice). That takes milliseconds, and is not needed where resize() comes first.
//
// An epoch lasts from the first open to the last close, whatever processes have the file open.
// With each new epoch everything older weighs half as much: the map evolves. The file's clock
// stands while nobody has the file open, so that a map that waited for a day is as hot as before.
//
// Segments that were fetched ahead are marked; update() says which of them no longer agree with the
// file. The scores stay, because a rewrite seldom changes which parts of a file are read.
//
// Times are nanoseconds of any one clock. Memory: at most kMemoryBytesMax, 160 bytes for each
// segment up to the last one touched.
//
// Thread safety: none. Ownership: a value.
#pragma once

#include <cstdint>
#include <vector>

#include "base/ids.h"
#include "policy/heat/heat_score.h"

namespace cairn {

// How scores fade. The paper leaves the step open.
struct HeatPace {
  HeatDecay decay;
  double step_ns = 1e9;

  double steps(std::int64_t time_ns) const { return static_cast<double>(time_ns) / step_ns; }
  friend bool operator==(const HeatPace& one, const HeatPace& other) {
    return one.decay.log_base == other.decay.log_base && one.step_ns == other.step_ns;
  }
};

struct HeatRange {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const HeatRange&, const HeatRange&) = default;
};

class FileHeat {
 public:
  static constexpr std::uint32_t kSegmentsMax = 4096;
  // With it, kSegmentsMax segments reach up to kOffsetMax.
  static constexpr unsigned kSegmentShiftMax = 20;
  static_assert((std::uint64_t{kSegmentsMax} << (kSegmentShiftMax + kBlockShift)) == kOffsetMax);
  static constexpr std::size_t kMemoryBytesMax = kSegmentsMax * std::size_t{160} + 1024;

  // All there is to a map while nobody has the file open.
  struct State {
    HeatPace pace;
    std::uint64_t file_bytes = 0;
    std::int64_t closed_ns = 0;  // what the scores' times refer to
    std::uint32_t epochs = 0;
    std::uint32_t segment_shift = 0;
    std::vector<HeatScore> scores;
  };

  explicit FileHeat(const HeatPace& pace = {}) : pace_(pace) {}
  // A map as state() gave it. Returns: whether it can be one of this pace; nothing changes if not.
  // Requires: nobody has the file open.
  bool restore(State state);
  // For a file that is open: as if it had been closed at the time of the last access.
  State state() const;

  // So many more processes (descriptions) have it open. The first begins an epoch.
  void open(std::int64_t now_ns, std::uint32_t count = 1);
  // So many fewer, also when a process dies. Returns: whether that ended the epoch: the map is to
  // be saved.
  bool close(std::int64_t now_ns, std::uint32_t count = 1);
  std::uint32_t openers() const { return openers_; }
  std::uint32_t epochs() const { return epochs_; }

  // Each segment that the range touches is referenced once. What lies beyond kOffsetMax is not
  // counted.
  void access(const HeatRange& range, std::int64_t now_ns);

  // The file has this size now. What lies beyond is forgotten.
  void resize(std::uint64_t file_bytes);

  // The range was fetched ahead of its use.
  void mark_fetched(const HeatRange& range);
  // The range was written. Returns: what was fetched ahead of the segments that it touches, which
  // is to be dropped; adjacent ranges are one, and all of them end within the offsets there are.
  std::vector<HeatRange> update(const HeatRange& range);
  // The same for everything, as when the file was replaced below.
  std::vector<HeatRange> update() { return update({0, kOffsetMax}); }

  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t segment_bytes() const { return std::uint64_t{kBlockBytes} << segment_shift_; }
  unsigned segment_shift() const { return segment_shift_; }
  // Up to the last one that was touched.
  std::uint32_t segment_count() const { return static_cast<std::uint32_t>(segments_.size()); }
  HeatRange range_of(std::uint32_t segment) const {
    return {segment * segment_bytes(), segment_bytes()};
  }
  std::uint32_t segment_of(std::uint64_t offset) const {
    return static_cast<std::uint32_t>(offset >> (kBlockShift + segment_shift_));
  }

  const HeatPace& pace() const { return pace_; }
  // Requires of all: segment < segment_count().
  const HeatScore& score(std::uint32_t segment) const { return segments_[segment].score; }
  double score_at(std::uint32_t segment, std::int64_t now_ns) const {
    return score(segment).at(time_at(now_ns), pace_.decay);
  }
  double logarithm_at(std::uint32_t segment, std::int64_t now_ns) const {
    return score(segment).logarithm_at(time_at(now_ns), pace_.decay);
  }
  // As an index over many files keeps it (policy/heat/heat_index.h), while the file is open.
  FadingScore fading(std::uint32_t segment) const { return score(segment).fading(pace_.decay); }

  // The segments accessed since the last call, ascending. After the segments' size has changed
  // (segment_shift()): all of them, under their new numbers.
  std::vector<std::uint32_t> take_changed();

  std::size_t memory_bytes() const;

 private:
  struct Segment {
    HeatScore score;
    bool is_changed = false;
    bool is_fetched = false;
  };
  static_assert(kSegmentsMax * sizeof(Segment) + 1024 <= kMemoryBytesMax);
  // Numbers [first, end) of segments.
  struct Numbers {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
  };

  // In steps; it stands while nobody has the file open.
  double time_at(std::int64_t now_ns) const {
    return pace_.steps(openers_ > 0 ? now_ns : closed_ns_);
  }
  void cover(std::uint64_t end_offset);
  void double_segments();
  // The segments of a range; they exist, and are large enough that there are not too many.
  Numbers touch(const HeatRange& range);

  HeatPace pace_;
  std::uint64_t file_bytes_ = 0;
  std::int64_t closed_ns_ = 0;
  std::int64_t latest_ns_ = 0;  // of the events while it was open
  std::uint32_t openers_ = 0;
  std::uint32_t epochs_ = 0;
  unsigned segment_shift_ = 0;
  std::vector<Segment> segments_;
};

}  // namespace cairn
