// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/loop_nest.h"

#include <algorithm>

#include "policy/prefetch/run_writer.h"

namespace cairn {

bool LoopNest::run_in(Loop& loop, bool is_outermost, Name ran) {
  const bool is_other = loop.body != kNone && loop.body != ran;
  const bool ends = is_other && !is_outermost;
  loop.times = ends ? 0 : is_other ? 1 : loop.times + 1;
  loop.body = ends ? kNone : ran;
  loop.last = ran;
  return ends;
}

LoopNest::Name LoopNest::next_of(unsigned depth, Name name) const {
  return depth == 0 ? steps_.next_of(name) : laps_[depth - 1].next_of(name);
}

LoopNest::Name LoopNest::whole_of(const Loops& loops, unsigned depth) const {
  if (depth == kLoopsMax - 1) return kNone;
  const Name expected = depth + 1 == depth_ ? kNone : loops[depth + 1].next;
  const Lap* lap = laps_[depth].find(expected);
  const Loop& loop = loops[depth];
  if (loop.body == kNone) return lap == nullptr ? kNone : expected;
  const auto fits = [&](const Lap& whole) {
    return whole.body == loop.body && whole.times >= loop.times;
  };
  return lap != nullptr && fits(*lap) ? expected : laps_[depth].latest(fits);
}

void LoopNest::expect(Loops& loops, unsigned changed) const {
  for (unsigned depth = changed; depth-- > 0;) {
    Loop& loop = loops[depth];
    const Name known = next_of(depth, loop.last);
    const bool is_known = known != kNone;
    const bool follows_a_guess =
        loop.body == kNone && (depth + 1 == depth_ || loops[depth + 1].is_guess);
    loop.lap = whole_of(loops, depth);
    const Lap* lap = loop.lap == kNone ? nullptr : laps_[depth].find(loop.lap);
    // What came behind the last one is better than a guess that says another.
    if (lap != nullptr && follows_a_guess && is_known && known != lap->body) lap = nullptr;
    if (lap == nullptr) {
      loop.lap = kNone;
      loop.next = is_known ? known : loop.last;
      loop.is_guess = !is_known;
    } else {
      loop.next = loop.times < lap->times ? lap->body : lap->end;
      loop.is_guess = !is_known && follows_a_guess;
    }
  }
}

unsigned LoopNest::go_on(Loops& loops) const {
  Name ran = loops[0].next;
  for (unsigned depth = 0; depth < depth_; ++depth) {
    Loop& loop = loops[depth];
    const Lap lap{loop.body, loop.times, ran};
    if (!run_in(loop, depth == kLoopsMax - 1, ran)) return depth + 1;
    const Lap* whole = laps_[depth].find(loop.lap);
    ran = whole != nullptr && *whole == lap ? loop.lap : laps_[depth].name_of(lap);
    if (ran != kNone) continue;
    // A lap like this has never been: nothing is known of the loops around it.
    std::fill(loops.begin() + depth + 1, loops.end(), Loop{});
    break;
  }
  return depth_;
}

unsigned LoopNest::learn(Name ran) {
  for (unsigned depth = 0;; ++depth) {
    depth_ = std::max(depth_, depth + 1);
    Loop& loop = loops_[depth];
    if (depth == 0) {
      steps_.note_next(loop.last, ran);
    } else {
      laps_[depth - 1].note_next(loop.last, ran);
    }
    const Lap lap{loop.body, loop.times, ran};
    if (!run_in(loop, depth == kLoopsMax - 1, ran)) return depth + 1;
    ran = laps_[depth].name(lap);
  }
}

void LoopNest::observe(BlockRun run) {
  const std::int64_t delta = last_.count == 0 ? 0 : run.first - last_.first;
  last_ = run;
  if (delta == 0) return;
  trust_ =
      delta == delta_expected_ ? std::min(kTrustMax, trust_ + 1) : std::max(-kTrustMax, trust_ - 1);
  const Step step{delta, run.count};
  // What has never been may be the end of all that is known.
  if (steps_.name_of(step) == kNone) trust_ = std::min(trust_, -1);
  expect(loops_, learn(steps_.name(step)));
  const Step* next = steps_.find(loops_[0].next);
  delta_expected_ = next == nullptr ? 0 : next->delta;
}

std::size_t LoopNest::predict(std::span<BlockRun> next) const {
  if (trust_ < 0) return 0;
  RunWriter writer(next);
  Loops loops = loops_;
  std::int64_t first = last_.first;
  while (!writer.is_full()) {
    const Step* step = steps_.find(loops[0].next);
    if (step == nullptr) break;
    // Where nothing says how long the lap is, no more of it is presumed than there has been.
    const std::uint32_t presumed = 2 * std::max(loops_[0].times, kPresumedMin);
    if (loops[0].lap == kNone && loops[0].times >= presumed) break;
    first += step->delta;
    writer.add(BlockRun{first, step->blocks});
    expect(loops, go_on(loops));
  }
  return writer.count();
}

}  // namespace cairn
