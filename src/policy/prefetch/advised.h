// SPDX-License-Identifier: Apache-2.0
// advised: believes a program that says it reads a stream sequentially, from the first read on,
// until two reads in a row were elsewhere. (For the rest of posix_fadvise() see
// policy/prefetch/stream_hints.h.)
//
// Thread safety: none. Ownership: borrows the hints.
#pragma once

#include "policy/prefetch/stream_hints.h"

namespace cairn {

class Advised final : public Predictor {
 public:
  explicit Advised(const StreamHints& hints) : hints_(hints) {}
  const char* name() const override { return "advised"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

 private:
  static constexpr unsigned kJumpsMax = 2;

  const StreamHints& hints_;
  BlockRun last_{-1, 0};
  unsigned jumps_ = 0;  // in a row
};

}  // namespace cairn
