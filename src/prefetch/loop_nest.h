// SPDX-License-Identifier: Apache-2.0
// loop-nest: the reads of a nest of loops over an array, of which no bound and no shape is told.
//
// Distinct distances between reads are the loops, in order of first appearance. Each counts its
// steps since an outer one stepped; what it stood at when an outer one stepped is its bound. The
// next read is a step of the innermost loop whose bound is not reached. So one lap of a loop
// teaches its bound, and strided rows, tiles, tiles with ghost cells, sub-volumes and sweeps along
// the slow axis are all the same thing. (Our own; a reference prediction table with more levels.)
//
// Bounds: kLevelsMax loops. What has more distances is no nest: it starts over.
// Thread safety: none.
#pragma once

#include <array>

#include "prefetch/predictor.h"

namespace cairn {

class LoopNest final : public Predictor {
 public:
  static constexpr unsigned kLevelsMax = 8;

  const char* name() const override { return "loop-nest"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

 private:
  static constexpr std::uint32_t kUnbounded = UINT32_MAX;
  // Steps that went as expected, less those that did not.
  static constexpr int kTrustMax = 4;
  struct Level {
    std::int64_t delta = 0;
    std::uint32_t blocks = 1;          // of the read that such a step leads to
    std::uint32_t bound = kUnbounded;  // steps
  };
  using Steps = std::array<std::uint32_t, kLevelsMax>;

  unsigned level_of(std::int64_t delta);
  // The loop that steps next after so many steps of each, or levels_ when all are through.
  unsigned next_level(const Steps& steps) const;

  std::array<Level, kLevelsMax> level_{};
  Steps steps_{};
  unsigned levels_ = 0;
  BlockRun last_{-1, 0};
  std::int64_t delta_expected_ = 0;  // 0: none
  int trust_ = 0;
};

}  // namespace cairn
