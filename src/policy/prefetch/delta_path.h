// SPDX-License-Identifier: Apache-2.0
// delta-path: the reads that followed the last distances between reads, in any stream of the node.
// It looks ahead along the most likely path for as long as the product of the steps' shares stays
// above kConfidenceMin (path confidence: see policy/prefetch/delta_paths.h). It serves short
// irregular patterns, and patterns that one rank teaches the others.
//
// It does not learn from jumps of more than 2^31 blocks.
//
// Thread safety: none. Ownership: borrows the tables.
#pragma once

#include "policy/prefetch/delta_paths.h"
#include "policy/prefetch/predictor.h"

namespace cairn {

class DeltaPath final : public Predictor {
 public:
  static constexpr float kConfidenceMin = 0.4F;

  explicit DeltaPath(DeltaPaths& paths) : paths_(paths) {}
  const char* name() const override { return "delta-path"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

 private:
  DeltaPaths& paths_;
  DeltaTrail trail_;
  BlockRun last_{-1, 0};
};

}  // namespace cairn
