// SPDX-License-Identifier: Apache-2.0
// stride: reads that begin equally far apart, forwards or backwards. Two equal steps in a row arm
// it, a different one disarms it (the reference prediction table: Chen, Baer, "Effective
// hardware-based data prefetching for high-performance processors", IEEE Trans. Computers 44(5),
// 1995).
//
// Thread safety: none.
#pragma once

#include "policy/prefetch/predictor.h"

namespace cairn {

class Stride final : public Predictor {
 public:
  const char* name() const override { return "stride"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;
  bool sees_no_end() const override { return true; }

 private:
  BlockRun last_{-1, 0};
  std::int64_t delta_ = 0;  // 0: none yet
  bool is_armed_ = false;
};

}  // namespace cairn
