// SPDX-License-Identifier: Apache-2.0
// declared: the order that the user or the program has declared, for instance a shuffle with a
// known seed (clairvoyance: Dryden et al., "Clairvoyant prefetching for distributed machine
// learning I/O", SC 2021).
//
// Reads may differ in length from the declared runs, and may leave out up to kSkipsMax of them. A
// read that does not match a run within that distance is a mismatch. An order with more than one
// mismatch in kReadsPerMismatch reads is refuted once there were kMismatchesMax too many, and the
// predictor no longer follows it.
//
// Thread safety: none. Ownership: borrows the hints.
#pragma once

#include "policy/prefetch/stream_hints.h"

namespace cairn {

class Declared final : public Predictor {
 public:
  static constexpr std::size_t kSkipsMax = 16;
  static constexpr unsigned kMismatchesMax = 8;
  static constexpr unsigned kReadsPerMismatch = 4;

  explicit Declared(StreamHints& hints) : hints_(hints) {}
  const char* name() const override { return "declared"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

  std::uint64_t mismatches() const { return mismatches_; }
  bool is_refuted() const { return hints_.is_order_refuted(); }

 private:
  // Whether there is an order to be followed; starts at its beginning if it is another than before.
  bool follow_order();
  void pass(BlockRun run);

  StreamHints& hints_;
  DeclaredOrder order_;         // that is being followed
  std::size_t at_ = 0;          // the run of it that is read next
  std::uint32_t consumed_ = 0;  // blocks of that run
  std::uint64_t mismatches_ = 0;
  unsigned doubt_ = 0;
};

}  // namespace cairn
