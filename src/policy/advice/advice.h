// SPDX-License-Identifier: Apache-2.0
// Whether Cairn helps a workload, and with which configuration: candidates of several sizes and
// policies are forecast (policy/advice/forecast.h), and the smallest that is about as fast as the
// fastest is chosen.
//
// Thread safety: pure functions. Units: bytes, seconds. Ownership: values.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/advice/forecast.h"
#include "policy/advice/plan_choice.h"

namespace cairn::advice {

struct Candidate {
  Plan plan;
  Forecast forecast;
  Gain gain;
};

enum class Verdict : std::uint8_t { kHelps, kMayHelp, kDoNotUse };

// Why it is not to be used.
enum class Refusal : std::uint8_t {
  kNone,
  kFastStore,    // about as fast as the tiers
  kReadOnce,     // at random, and nothing twice
  kKernelCache,  // the kernel keeps as much
  kLittleIo,     // of the time of the run
  kNoGain
};

enum class Limit : std::uint8_t {
  kStoreReads,
  kFirstUses,
  kStoreWrites,
  kTier,
  kProcessor,
  kFsyncs
};

enum class Improvement : std::uint8_t {
  kLargerRequests,
  kNoFsyncs,
  kDurableTier,
  kMoreMemory,
  kAnotherTier
};

struct Improved {
  Improvement what = Improvement::kMoreMemory;
  double seconds = 0;  // less than what is advised: the chosen plan, or to go without Cairn
  double bytes = 0;    // of memory or of the tier
};

struct Advice {
  Verdict verdict = Verdict::kDoNotUse;
  Refusal refusal = Refusal::kNone;
  Forecast without;
  std::vector<Candidate> candidates;  // each of another name
  std::size_t chosen = 0;             // of the candidates
  Sizes sizes;
  Limit limit = Limit::kStoreReads;
  std::vector<Improved> improvements;  // most first, those worth 5 % of the I/O time
  double compute_seconds = 0;
  // All fsyncs, if they survive what the level says.
  double store_fsync_seconds = 0;
  double node_fsync_seconds = 0;

  const Candidate& advised() const { return candidates[chosen]; }
  // The forecast of the advice: the chosen plan, or to go without Cairn.
  const Forecast& outlook() const {
    return verdict == Verdict::kDoNotUse ? without : advised().forecast;
  }
  // The change of the configuration with which Cairn would help although it is advised against as
  // it is; null: there is none.
  const Improved* way_to_help() const;
};

// Requires: a workload that is not empty; valid devices; machine.memory_bytes_max > 0.
Advice advise(const Workload& work, const Machine& machine, const Wishes& wishes);

}  // namespace cairn::advice
