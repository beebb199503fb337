// SPDX-License-Identifier: Apache-2.0
// A predictor whose behaviour the reads pick: that of block kMoodBlock + n puts it into its n-th
// mood. With other definitions it is in one mood from the beginning, is of another version, has no
// name, or misbehaves as soon as it is loaded.
//
// Thread safety: one thread at a time, as the interface promises.
#include <atomic>
#include <cstdint>
#include <stdexcept>

#include "cairn/predictor_plugin.h"

#ifndef PLUGIN_VERSION
#define PLUGIN_VERSION CAIRN_PREDICTOR_ABI_VERSION
#endif
#ifndef PLUGIN_NAME
#define PLUGIN_NAME "moody"
#endif
#ifndef PLUGIN_PREDICT
#define PLUGIN_PREDICT predict
#endif
#ifndef PLUGIN_MOOD
#define PLUGIN_MOOD kGood
#endif

namespace {

// The numbers of misbehaving_predictors_test.cc.
enum Mood : std::int64_t {
  kGood,
  kThrowsError,
  kThrowsNumber,
  kLoops,
  kCountsTooFar,
  kNegative,
  kNoBlocks,
  kOverflows,
  kBehindEnd,
  kAcrossEnd,
  kMoods
};
constexpr std::int64_t kMoodBlock = 900;

struct State {
  std::int64_t last = 0;
  std::int64_t mood = PLUGIN_MOOD;
};

std::atomic<int> live_states{0};

[[noreturn]] void loop() {
  volatile unsigned turns = 0;
  for (;;) turns = turns + 1;
}

void* create(const cairn_read_stream*) {
#ifdef PLUGIN_DECLINES
  return nullptr;
#else
  ++live_states;
  return new State;
#endif
}

void destroy(void* state) {
  --live_states;
  delete static_cast<State*>(state);
}

void observe(void* stream, const cairn_block_run* read) {
  auto* state = static_cast<State*>(stream);
  state->last = read->first;
  const std::int64_t mood = read->first - kMoodBlock;
  if (mood >= 0 && mood < kMoods) state->mood = mood;
}

// Good: the blocks behind the last one, and a fault behind the first of them.
[[maybe_unused]] std::uint32_t predict(void* stream, const cairn_read_stream* now,
                                       cairn_block_run* next, std::uint32_t max) {
  const auto* state = static_cast<State*>(stream);
  const auto end = static_cast<std::int64_t>(now->file_blocks);
  std::uint32_t count = 0;
  for (std::int64_t block = state->last + 1; count < max && block < end; ++block)
    next[count++] = cairn_block_run{block, 1, 0};
  if (count < 2) return count;
  switch (state->mood) {
    case kThrowsError:
      throw std::runtime_error("out of ideas");
    case kThrowsNumber:
      throw 42;
    case kLoops:
      loop();
    case kCountsTooFar:
      return 1'000'000;
    case kNegative:
      next[1].first = -5;
      break;
    case kNoBlocks:
      next[1].count = 0;
      break;
    case kOverflows:
      next[1] = cairn_block_run{INT64_MAX - 1, UINT32_MAX, 0};
      break;
    case kBehindEnd:
      next[1].first = end;
      break;
    case kAcrossEnd:
      next[1] = cairn_block_run{end - 2, UINT32_MAX, 0};
      break;
    default:
      break;
  }
  return count;
}

}  // namespace

// For tests: states that were not given back.
extern "C" __attribute__((visibility("default"))) int moody_live_states() { return live_states; }

const cairn_predictor* cairn_predictor_v1() {
#ifdef PLUGIN_THROWS_AT_ONCE
  throw std::runtime_error("no predictor today");
#endif
#ifdef PLUGIN_LOOPS_AT_ONCE
  loop();
#endif
  static const cairn_predictor kPredictor = {PLUGIN_VERSION, 0,       PLUGIN_NAME,   create,
                                             destroy,        observe, PLUGIN_PREDICT};
  return &kPredictor;
}
