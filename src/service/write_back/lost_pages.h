// SPDX-License-Identifier: Apache-2.0
// The pages of a file that are newer than the store, and that their tier does not give: they are
// lost, unless the tier gives them later, or a program writes them anew.
//
// Thread safety: LostRanges any thread; a LossCollector's calls come from one flush at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "memory/flush/flush_object.h"

namespace cairn::node {

struct LostRange {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

// What one turn of the flusher meets.
class LossCollector final : public LossWitness {
 public:
  void note_unreadable(ObjectIndex, BlockNumber number, std::uint16_t pages) override {
    for (unsigned page = 0; page < kPagesPerBlock; ++page) {
      if ((pages >> page & 1) == 0) continue;
      const std::uint64_t offset = offset_of(number) + page * kPageBytes;
      const bool goes_on =
          !ranges_.empty() && ranges_.back().offset + ranges_.back().length == offset;
      if (!goes_on) ranges_.push_back({offset, 0});
      ranges_.back().length += kPageBytes;
    }
  }
  // As far as the file goes.
  std::vector<LostRange> take(std::uint64_t file_size) {
    std::erase_if(ranges_, [=](const LostRange& range) { return range.offset >= file_size; });
    for (LostRange& range : ranges_)
      range.length = std::min(range.length, file_size - range.offset);
    return std::move(ranges_);
  }

 private:
  std::vector<LostRange> ranges_;
};

// What the last turn has met.
class LostRanges {
 public:
  void replace(std::vector<LostRange> ranges) {
    const std::lock_guard lock(mutex_);
    ranges_ = std::move(ranges);
  }
  std::vector<LostRange> get() const {
    const std::lock_guard lock(mutex_);
    return ranges_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<LostRange> ranges_;
};

}  // namespace cairn::node
