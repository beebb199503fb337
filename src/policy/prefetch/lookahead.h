// SPDX-License-Identifier: Apache-2.0
// How far ahead of its reader a stream is read, from the fate of earlier fetches (after AMP: Gill,
// Bathen, "AMP: Adaptive multi-stream prefetching in a shared cache", FAST 2007, section 4): a late
// block makes the distance longer, a block evicted before its use makes it shorter.
//
// AMP also raises its degree while the program uses all of it. We leave that out: it serves disks
// that are read one small piece after another, while here one operation fetches neighbours anyway,
// and a stream that is never late would only be read further behind its end in vain.
//
// Bounds: [kBlocksMin, kBlocksMax], 16 MiB at most. Thread safety: none.
#pragma once

#include <cstdint>

#include "base/check.h"

namespace cairn {

class Lookahead {
 public:
  static constexpr std::uint32_t kBlocksMin = 2;
  static constexpr std::uint32_t kBlocksMax = 256;
  static constexpr std::uint32_t kBlocksFirst = 8;
  static_assert(kBlocksMin <= kBlocksFirst && kBlocksFirst <= kBlocksMax);

  Lookahead() = default;
  // Requires: kBlocksMin <= blocks <= kBlocksMax.
  explicit Lookahead(std::uint32_t blocks) : blocks_(blocks) {
    CAIRN_DCHECK(blocks >= kBlocksMin && blocks <= kBlocksMax);
  }

  // A read waited for blocks that were on their way, or had not been asked for yet: so many.
  void on_late(std::uint32_t blocks = 1);
  // A block left RAM, and nobody had read it.
  void on_evicted_unused();

  // As far as it goes, and that was not far enough: a program that reads like this, in bursts,
  // gains from blocks that wait for it in slower tiers.
  bool is_at_most() const { return blocks_ == kBlocksMax; }

  // The most blocks that may be ahead of the reader. `factor`: StreamHints::ahead_factor().
  std::uint32_t blocks_ahead(unsigned factor = 1) const;
  // The same in reads of so many blocks; at least one. Requires: blocks_per_read > 0.
  std::uint32_t runs_ahead(std::uint32_t blocks_per_read, unsigned factor = 1) const;

 private:
  std::uint32_t blocks_ = kBlocksFirst;
};

// How far ahead streams of a file have come to be read, in the mean: others begin with it, so that
// not each of a thousand ranks waits until it has found that out for itself.
class CommonLookahead {
 public:
  // The stream's has changed.
  void learn(const Lookahead& stream);
  Lookahead begin() const { return Lookahead(static_cast<std::uint32_t>(blocks_)); }
  float blocks() const { return blocks_; }
  // Takes what blocks() once gave; anything else is made to fit.
  void restore(float blocks);

 private:
  static constexpr float kRate = 0.125F;

  float blocks_ = Lookahead::kBlocksFirst;
};

}  // namespace cairn
