// SPDX-License-Identifier: Apache-2.0
// history-replay: finds the place in the history of this file, of any stream and epoch, where the
// same blocks were read before, and foresees the reads that followed then (temporal streaming:
// Wenisch et al., "Temporal streaming of shared memory", ISCA 2005). It speaks after two steps that
// agree with the history. It serves orders without any pattern but their repetition, such as the
// same shuffle in every epoch.
//
// Reads that agree with the history are not recorded again.
//
// Thread safety: none. Ownership: borrows the history.
#pragma once

#include "policy/prefetch/access_history.h"

namespace cairn {

class HistoryReplay final : public Predictor {
 public:
  explicit HistoryReplay(AccessHistory& history) : history_(history), writer_(history) {}
  const char* name() const override { return "history-replay"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;
  RepeatedOrder repeated() const override;

 private:
  using Position = AccessHistory::Position;
  static constexpr Position kNowhere = AccessHistory::kNowhere;
  // Reads in a row after which what was read once is taken for what will be read again.
  static constexpr std::uint32_t kAgreedMin = 16;

  // The block that the history has next, or -1.
  std::int64_t next_in_history() const;
  void follow(BlockRun run);

  AccessHistory& history_;
  HistoryWriter writer_;
  std::uint32_t generation_ = 0;
  Position stretch_ = kNowhere;    // of the history, that the stream is in
  std::int64_t next_block_ = 0;    // of that stretch
  std::uint32_t read_blocks_ = 1;  // of the longest read so far
  std::uint32_t agreed_ = 0;       // reads in a row
  bool agrees_ = false;
  bool is_tentative_ = false;  // the history was found, and not compared with anything yet
  bool records_ = true;
};

}  // namespace cairn
