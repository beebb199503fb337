// SPDX-License-Identifier: Apache-2.0
// history-replay: finds the place in the history of this file, of any stream and epoch, where the
// same blocks were read before, and foresees the reads that followed then (temporal streaming:
// Wenisch et al., "Temporal streaming of shared memory", ISCA 2005). It speaks after two steps that
// agree with the history. It serves orders without any pattern but their repetition, such as the
// same shuffle in every epoch.
//
// Reads that agree with the history are not recorded again. Nor is a single read elsewhere after
// long agreement: the order is taken to go on behind the read that was not made, or a few further
// on. Only when that fails kSurprisesMax times is the stream looked for in the rest of the history.
// A read that came instead of another takes its place there, so that an order that changes a little
// with each epoch stays known.
//
// Thread safety: none. Ownership: borrows the history.
#pragma once

#include <array>

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
  // Reads in agreement, less those that were not, that are worth keeping the place for.
  static constexpr std::uint32_t kFirmMin = 6;
  static constexpr std::uint32_t kFirmMax = 32;
  static constexpr std::uint32_t kSurprisesMax = 4;  // in a row
  static constexpr unsigned kSkippedMax = 4;         // stretches

  // The block that the history has next, or -1.
  std::int64_t next_in_history() const;
  void follow(BlockRun run);
  // After a read elsewhere: whether the place in the history is kept.
  bool keep_place(BlockRun run);
  bool skip_to(BlockRun run);
  void pass_over(BlockRun run);
  bool is_after_elsewhere(BlockRun run) const;
  void learn_exchanges();
  void look_elsewhere(BlockRun run);

  AccessHistory& history_;
  HistoryWriter writer_;
  std::uint32_t generation_ = 0;
  Position stretch_ = kNowhere;    // of the history, that the stream is in
  std::int64_t next_block_ = 0;    // of that stretch
  std::uint32_t read_blocks_ = 1;  // of the longest read so far
  std::uint32_t agreed_ = 0;       // reads in a row
  std::uint32_t firm_ = 0;         // how much the place is worth
  std::uint32_t surprises_ = 0;    // in a row, at this place
  // Stretches that were not read, and what was instead of them, since the last agreement.
  struct Exchange {
    Position place = kNowhere;
    BlockRun instead{-1, 0};
  };
  std::array<Exchange, kSurprisesMax> exchanges_{};
  unsigned exchange_count_ = 0;
  Position elsewhere_ = kNowhere;  // where the history has the last surprise
  bool agrees_ = false;
  bool is_kept_ = false;       // the place is, although the last read was elsewhere
  bool is_tentative_ = false;  // the history was found, and not compared with anything yet
  bool records_ = true;
};

}  // namespace cairn
