// SPDX-License-Identifier: Apache-2.0
// sequential: the blocks behind those just read, when at least two reads in a row began where the
// read before ended. Unlike the strides it does not mind reads of different lengths: it foresees
// reads of their mean.
//
// As readahead does, it looks twice as far ahead with every step, beginning with four reads, so
// that a short contiguous stretch among random reads does not fetch much for nothing.
//
// Thread safety: none.
#pragma once

#include "policy/prefetch/predictor.h"

namespace cairn {

class Sequential final : public Predictor {
 public:
  const char* name() const override { return "sequential"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;
  bool sees_no_end() const override { return true; }

 private:
  static constexpr std::uint32_t kStepsMin = 2;
  static constexpr std::uint32_t kWindowMax = 4096;

  BlockRun last_{-1, 0};
  float read_blocks_ = 1;     // of a read, running mean
  std::uint32_t steps_ = 0;   // in a row
  std::uint32_t window_ = 0;  // reads
};

}  // namespace cairn
