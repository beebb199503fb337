// SPDX-License-Identifier: Apache-2.0
// walks: several walks through one stream, each with its own step, forwards or backwards, at rates
// of their own and in any turns. A read that continues no walk is a stray; three strays that are
// equally far apart, or adjoin each other, begin a walk wherever they stand among the others. (The
// idea of several detectors of strides for one stream of addresses: Palacharla, Kessler,
// "Evaluating stream buffers as a secondary cache replacement", ISCA 1994; to take any three equal
// distances for a beginning is our own, so that walks may cross each other and lie close together.)
//
// What it foresees are the next steps of all walks, in the order in which they are due by the rates
// so far. A walk that is long overdue has ended. Where walks usually end as soon as they have
// begun, as chance has it in random reads, more steps are wanted of one before it is believed.
//
// Bounds: kWalksMax walks and kStraysMax strays; a read costs a walk over both and at most
// kStraysMax^2 / 2 comparisons. Thread safety: none.
#pragma once

#include <array>

#include "policy/prefetch/predictor.h"

namespace cairn {

class Walks final : public Predictor {
 public:
  static constexpr unsigned kWalksMax = 12;
  static constexpr unsigned kStraysMax = 24;

  const char* name() const override { return "walks"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;
  bool sees_no_end() const override { return true; }
  Verdict verdict() const override { return verdict_; }

 private:
  struct Walk {
    BlockRun last{-1, 0};
    std::int64_t delta = 0;
    std::uint32_t steps = 0;    // made; 0: there is no such walk
    std::uint32_t read_at = 0;  // of `reads_`
    float interval = 1;         // reads of the stream from step to step, running mean
    bool is_sequential = false;
    bool was_believed = false;
  };
  struct Stray {
    BlockRun run{-1, 0};
    std::uint32_t read_at = 0;
  };

  static BlockRun next_of(const Walk& walk);
  static bool goes_on(const Walk& walk, BlockRun run);
  // Whether these three, in this order, are the beginning of a walk.
  static bool are_steps(BlockRun first, BlockRun second, BlockRun third);
  bool is_overdue(const Walk& walk) const;
  bool is_believed(const Walk& walk) const;
  void step(Walk& walk, BlockRun run);
  void end_overdue();
  void end(Walk& walk);
  bool begin_walk(BlockRun run);
  void make_walk(unsigned first, unsigned second, BlockRun run);
  void add_stray(BlockRun run);

  std::array<Walk, kWalksMax> walks_{};
  std::array<Stray, kStraysMax> strays_{};  // the latest first
  unsigned stray_count_ = 0;
  std::uint32_t reads_ = 0;
  float lives_ = 0.6F;  // the share of walks that went on after their beginning, lately
  Verdict verdict_ = Verdict::kNone;
};

}  // namespace cairn
