// SPDX-License-Identifier: Apache-2.0
// loop-nest: the reads of a nest of loops over an array, whose bounds and shape it finds by itself.
//
// A lap of a loop is one thing several times over and then another. For the innermost loop: so many
// equal steps from read to read, and then the step to the next row. For the next one: so many equal
// rows and then the last, from which another tile begins; and so on outwards. Tiles of four rows of
// five blocks, in an array of 128 blocks a row:
//
//   step   1 1 1 1 124  1 1 1 1 124  1 1 1 1 124  1 1 1 1 -383  1 1 1 1 124 ...
//   row    [---- A ---] [---- A ---] [---- A ---] [---- B ----]  A: 4 times 1, then 124
//   tile   [--------------------- X -------------------------]  X: 3 times A, then B
//
// The next read follows from the outermost loop inwards. The lap that a loop is in is the one that
// the loop around it expects, if the part seen so far agrees, or else the latest that agrees; a lap
// of which nothing is known goes on as it did last. So one lap of a loop teaches its bound. Laps
// are distinguished by all that is in them, so one lap of each kind teaches them all: tiles at an
// array's edges, whose ghost cells are cut off, are other laps than those inside, and rows of tiles
// repeat as a whole. (Our own: the run lengths of the distances between reads, and of those the run
// lengths again. With one bound for each loop it is a reference prediction table of more levels.)
//
// Bounds: kLoopsMax loops, kLapsMax kinds of laps of each and kStepsMax steps, those seen last.
// Thread safety: none.
#pragma once

#include <array>

#include "policy/prefetch/named_recently.h"
#include "policy/prefetch/predictor.h"

namespace cairn {

class LoopNest final : public Predictor {
 public:
  static constexpr unsigned kLoopsMax = 8;
  static constexpr unsigned kLapsMax = 16;
  static constexpr unsigned kStepsMax = 16;

  const char* name() const override { return "loop-nest"; }
  void observe(BlockRun run) override;
  std::size_t predict(std::span<BlockRun> next) const override;

 private:
  // Names a step, or a lap of a loop.
  using Name = std::uint32_t;
  static constexpr Name kNone = 0;
  // Steps that went as expected, less those that did not.
  static constexpr int kTrustMax = 4;
  static constexpr std::uint32_t kPresumedMin = 8;  // steps

  struct Step {
    std::int64_t delta = 0;
    std::uint32_t blocks = 1;  // of the read that it leads to
    bool operator==(const Step&) const = default;
  };
  struct Lap {
    Name body = kNone;  // a lap of the loop inside, or a step
    std::uint32_t times = 0;
    Name end = kNone;  // the other one, behind the last body
    bool operator==(const Lap&) const = default;
  };
  struct Loop {
    // What it has run of its lap.
    Name body = kNone;  // none: the lap is yet to begin
    std::uint32_t times = 0;
    Name last = kNone;  // the body, or what ended the lap before
    // What is expected of it, by what it and those around it have run.
    Name lap = kNone;  // the whole of it, as far as known
    Name next = kNone;
    bool is_guess = false;  // that what was last comes again
  };
  // The innermost first: at depth 0 steps run. The outermost never ends a lap.
  using Loops = std::array<Loop, kLoopsMax>;

  // Returns: whether what ran has ended the loop's lap.
  static bool run_in(Loop& loop, bool is_outermost, Name ran);
  Name next_of(unsigned depth, Name name) const;
  Name whole_of(const Loops& loops, unsigned depth) const;
  // `changed`: how many loops, from the innermost, have run anything since it was last asked.
  void expect(Loops& loops, unsigned changed) const;
  // Runs the step that is expected. Returns: in how many loops.
  unsigned go_on(Loops& loops) const;
  // Runs the step that was made. Returns: in how many loops.
  unsigned learn(Name step);

  NamedRecently<Step, kStepsMax> steps_;
  std::array<NamedRecently<Lap, kLapsMax>, kLoopsMax - 1> laps_;
  Loops loops_{};
  unsigned depth_ = 0;  // loops in use
  BlockRun last_{-1, 0};
  std::int64_t delta_expected_ = 0;  // 0: none
  int trust_ = 0;
};

}  // namespace cairn
