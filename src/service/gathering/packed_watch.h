// SPDX-License-Identifier: Apache-2.0
// One packed dataset of a version of a file: what boxes of it are read, and so which of its chunks
// are to be unpacked next.
//
// Units: chunks of the file. Thread safety: none. Ownership: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "policy/arrays/packed_array.h"
#include "service/gathering/array_watch.h"

namespace cairn::node {

class PackedWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Chunks that wait at a time; more are left to their readers.
  static constexpr std::size_t kWantedMax = 4096;

  // Requires: an array that has a grid.
  explicit PackedWatch(const arrays::PackedArray& array);

  const arrays::PackedArray& array() const { return array_; }
  const arrays::ChunkGrid& grid() const { return grid_; }
  std::uint64_t bytes_of(std::uint64_t chunk) const;

  // In what boxes the array is read; null: that has not shown yet.
  const arrays::ChunkGrid* boxes() const { return watch_.grid(); }
  // Whether it has shown that since the last such question.
  bool take_shown_boxes() { return watch_.take_shown_grid(); }
  // It is probably read so. Requires: a grid of an array of this shape.
  void expect(const arrays::ChunkGrid& boxes) { watch_.expect(boxes); }

  // The reader reads that box of the array: what it is in is nobody's work any more.
  void observe(std::uint64_t reader, const arrays::Box& box);

  // Takes the chunks that come next, at most so many, in the order of the file.
  std::vector<std::uint64_t> take(std::size_t most);
  bool has_wanted() const { return !wanted_.empty(); }
  void drop_wanted() { wanted_.clear(); }
  // All of a piece of work is done, or given up.
  void finish(const std::vector<std::uint64_t>& taken) {
    for (const std::uint64_t chunk : taken) at_work_.erase(chunk);
  }
  // Such a chunk is in the tiers now. It was unpacked ahead unless its reader has come meanwhile.
  void note_unpacked(std::uint64_t chunk, Time now);
  // Bytes of such chunks, of which no reader has come yet.
  std::uint64_t unread_bytes() const { return unread_bytes_; }
  // The readers of those that were unpacked before that time do not come any more.
  void forget_unread(Time before);
  // How many were unpacked ahead.
  std::uint64_t unpacked() const { return unpacked_; }

 private:
  arrays::Box snapped(const arrays::Box& box) const;

  arrays::PackedArray array_;
  arrays::ChunkGrid grid_;
  ArrayWatch watch_;
  std::set<std::uint64_t> wanted_;
  std::set<std::uint64_t> at_work_;                         // of those that were taken
  std::map<std::uint64_t, Time> unread_;                    // and when it was unpacked
  std::deque<std::pair<Time, std::uint64_t>> unpacked_at_;  // the latest last
  std::uint64_t unread_bytes_ = 0;
  std::uint64_t next_ = 0;  // the chunk behind the last one that was taken
  std::uint64_t unpacked_ = 0;
};

}  // namespace cairn::node
