// SPDX-License-Identifier: Apache-2.0
// What was foreseen last of a stream, read by read, and how far the stream has come in it since.
// Reads may be left out, and may be shorter or longer than they were foreseen.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "policy/prefetch/predictor.h"

namespace cairn {

class Forecast {
 public:
  // A read is looked for so far behind the one that is expected next.
  static constexpr std::size_t kSkipsMax = 16;

  void begin(std::vector<BlockRun> runs);
  // The stream has read this.
  void pass(BlockRun run);
  // What comes next. Returns how many of `next` are filled.
  std::size_t copy(std::span<BlockRun> next) const;

  // Reads that are still to come.
  std::size_t left() const { return runs_.size() - at_; }
  // Reads since its beginning that were in it, and that were not.
  std::uint32_t hits() const { return hits_; }
  std::uint32_t misses() const { return misses_; }

 private:
  void move_behind(BlockRun run);

  std::vector<BlockRun> runs_;
  std::size_t at_ = 0;
  std::uint32_t hits_ = 0;
  std::uint32_t misses_ = 0;
};

}  // namespace cairn
