// SPDX-License-Identifier: Apache-2.0
// markov: the rest of the segment that is being read, then the segment that followed it most often,
// and so on while the product of the shares stays above kConfidenceMin; see
// policy/prefetch/segment_chain.h. It speaks only after it has foreseen the latest jump: on skewed
// random reads it would otherwise fetch all the time and be right in one of eight.
//
// Thread safety: none. Ownership: borrows the chain.
#pragma once

#include "policy/prefetch/predictor.h"
#include "policy/prefetch/segment_chain.h"

namespace cairn {

class Markov final : public Predictor {
 public:
  static constexpr float kConfidenceMin = 0.5F;

  explicit Markov(SegmentChain& chain) : chain_(chain) {}
  const char* name() const override { return "markov"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

 private:
  SegmentChain& chain_;
  SegmentChain::Segment segment_;  // that is being read; no blocks: none yet
  bool was_right_ = false;
};

}  // namespace cairn
