// SPDX-License-Identifier: Apache-2.0
// Fills the span that predict() was given: cuts the stretches of a file that a predictor foresees
// into pieces as long as the stream's reads, so that "so many reads ahead" means the same
// everywhere.
//
// Thread safety: none. Ownership: borrows the span.
#pragma once

#include <algorithm>

#include "base/check.h"
#include "policy/prefetch/predictor.h"

namespace cairn {

class RunWriter {
 public:
  explicit RunWriter(std::span<BlockRun> next) : next_(next) {}

  bool is_full() const { return count_ == next_.size(); }
  std::size_t count() const { return count_; }

  void add(BlockRun run) {
    if (!is_full()) next_[count_++] = run;
  }
  // The blocks [first, end). Requires: piece_blocks > 0.
  void add_stretch(std::int64_t first, std::int64_t end, std::uint32_t piece_blocks) {
    CAIRN_DCHECK(piece_blocks > 0);
    for (; first < end && !is_full(); first += piece_blocks) {
      const auto blocks =
          static_cast<std::uint32_t>(std::min<std::int64_t>(end - first, piece_blocks));
      add(BlockRun{first, blocks});
    }
  }

 private:
  std::span<BlockRun> next_;
  std::size_t count_ = 0;
};

}  // namespace cairn
