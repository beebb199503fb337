// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/walks.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {
namespace {

constexpr float kIntervalRate = 0.25F;
constexpr float kLivesRate = 0.1F;
constexpr std::uint32_t kStepsAtBirth = 2;
// Turns are random, so a step may well come after several times the mean interval.
constexpr float kIntervalsUntilOverdue = 5;
constexpr std::uint32_t kReadsUntilOverdue = 12;
// No walk is foreseen further than it has come by half, so that short ones cost little.
constexpr std::uint32_t kStepsAheadMin = 2;
// Walks through a file are not as far apart as this from step to step.
constexpr std::int64_t kDeltaMax = std::int64_t{1} << 40;

}  // namespace

BlockRun Walks::next_of(const Walk& walk) {
  return BlockRun{walk.is_sequential ? walk.last.end() : walk.last.first + walk.delta,
                  walk.last.count};
}

bool Walks::goes_on(const Walk& walk, BlockRun run) {
  if (walk.is_sequential) return goes_on_at(run, walk.last.end());
  return run.first == walk.last.first + walk.delta;
}

bool Walks::are_steps(BlockRun first, BlockRun second, BlockRun third) {
  const bool adjoin = goes_on_at(third, second.end()) && goes_on_at(second, first.end());
  const std::int64_t delta = third.first - second.first;
  return adjoin || (delta != 0 && std::abs(delta) < kDeltaMax &&
                    second.first - first.first == delta && first.count == third.count);
}

bool Walks::is_overdue(const Walk& walk) const {
  const float waited = static_cast<float>(reads_ - walk.read_at);
  return waited > kIntervalsUntilOverdue * walk.interval + kReadsUntilOverdue;
}

bool Walks::is_believed(const Walk& walk) const {
  const std::uint32_t wanted = lives_ >= 0.5F   ? kStepsAtBirth
                               : lives_ >= 0.2F ? kStepsAtBirth + 1
                                                : kStepsAtBirth + 3;
  return walk.steps >= wanted && next_of(walk).first >= 0;
}

void Walks::step(Walk& walk, BlockRun run) {
  if (walk.steps == kStepsAtBirth) lives_ += kLivesRate * (1 - lives_);
  if (is_believed(walk)) verdict_ = Verdict::kRight;
  walk.interval += kIntervalRate * (static_cast<float>(reads_ - walk.read_at) - walk.interval);
  walk.last = run;
  walk.read_at = reads_;
  if (walk.steps < std::numeric_limits<std::uint32_t>::max()) ++walk.steps;
  walk.was_believed = is_believed(walk);
}

void Walks::end(Walk& walk) {
  CAIRN_DCHECK(walk.steps >= kStepsAtBirth);
  if (walk.steps == kStepsAtBirth) lives_ -= kLivesRate * lives_;
  // Its next steps were foreseen and are not made.
  if (walk.was_believed) verdict_ = Verdict::kWrong;
  walk.steps = 0;
}

void Walks::end_overdue() {
  for (Walk& walk : walks_) {
    if (walk.steps != 0 && is_overdue(walk)) end(walk);
  }
}

void Walks::make_walk(unsigned first, unsigned second, BlockRun run) {
  CAIRN_DCHECK(second < first && first < stray_count_);
  Walk* place = walks_.data();
  for (Walk& walk : walks_) {
    const auto rank = [](const Walk& of) {
      return of.steps == 0 ? 0U : of.steps == kStepsAtBirth ? 1U : 2U;
    };
    if (rank(walk) < rank(*place) || (rank(walk) == rank(*place) && walk.read_at < place->read_at))
      place = &walk;
  }
  if (place->steps != 0) end(*place);
  const BlockRun before = strays_[second].run;
  *place = Walk{run,
                run.first - before.first,
                kStepsAtBirth,
                reads_,
                static_cast<float>(reads_ - strays_[first].read_at) / 2,
                goes_on_at(run, before.end()),
                false};
  place->was_believed = is_believed(*place);
  for (const unsigned at : {first, second}) {
    std::copy(strays_.begin() + at + 1, strays_.begin() + stray_count_, strays_.begin() + at);
    --stray_count_;
  }
}

// The smallest step is the likeliest.
bool Walks::begin_walk(BlockRun run) {
  unsigned best_first = kStraysMax;
  unsigned best_second = kStraysMax;
  std::int64_t smallest = kDeltaMax;
  for (unsigned second = 0; second < stray_count_; ++second) {
    const std::int64_t delta = std::abs(run.first - strays_[second].run.first);
    if (delta >= smallest) continue;
    for (unsigned first = second + 1; first < stray_count_; ++first) {
      if (!are_steps(strays_[first].run, strays_[second].run, run)) continue;
      best_first = first;
      best_second = second;
      smallest = delta;
      break;
    }
  }
  if (best_first == kStraysMax) return false;
  make_walk(best_first, best_second, run);
  return true;
}

void Walks::add_stray(BlockRun run) {
  stray_count_ = std::min(stray_count_ + 1, kStraysMax);
  std::copy_backward(strays_.begin(), strays_.begin() + stray_count_ - 1,
                     strays_.begin() + stray_count_);
  strays_[0] = Stray{run, reads_};
}

void Walks::observe(BlockRun run) {
  ++reads_;
  verdict_ = Verdict::kNone;
  end_overdue();
  // Where two meet, the one that has made more steps goes on.
  Walk* going = nullptr;
  for (Walk& walk : walks_) {
    if (walk.steps == 0 || !goes_on(walk, run)) continue;
    if (going == nullptr || walk.steps > going->steps) going = &walk;
  }
  if (going != nullptr) return step(*going, run);
  if (!begin_walk(run)) add_stray(run);
}

std::size_t Walks::predict(std::span<BlockRun> next) const {
  struct Going {
    BlockRun run;
    const Walk* walk = nullptr;
    float due = 0;
    std::uint32_t steps_left = 0;  // that may be foreseen
  };
  std::array<Going, kWalksMax> going;
  unsigned count = 0;
  for (const Walk& walk : walks_) {
    if (walk.steps == 0 || !is_believed(walk)) continue;
    const float waited = static_cast<float>(reads_ - walk.read_at);
    going[count++] = Going{next_of(walk), &walk, std::max(0.0F, walk.interval - waited),
                           std::max(kStepsAheadMin, walk.steps / 2)};
  }
  RunWriter writer(next);
  while (count != 0 && !writer.is_full()) {
    Going* soonest =
        std::min_element(going.data(), going.data() + count,
                         [](const Going& one, const Going& other) { return one.due < other.due; });
    writer.add(soonest->run);
    const Walk& walk = *soonest->walk;
    soonest->due += walk.interval;
    soonest->run.first += walk.is_sequential ? walk.last.count : walk.delta;
    if (soonest->run.first < 0 || --soonest->steps_left == 0) *soonest = going[--count];
  }
  return writer.count();
}

}  // namespace cairn
