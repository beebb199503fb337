// SPDX-License-Identifier: Apache-2.0
//
// What caches of every size would have missed of a trace: the miss-ratio curves of LRU, of other
// experts of replacement and of the best that is possible, estimated from a sample of the pages
// (policy/miss_ratios), so that traces of any length take the same memory.
//
// Thread safety: pure function. Ownership: values. Memory: some megabytes, whatever the trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "policy/miss_ratios/miss_ratio_curve.h"
#include "service/trace/trace_event.h"

namespace cairn::cli {

struct MissOptions {
  std::uint64_t page_bytes = 512 * 1024;
  std::vector<std::string> experts;  // beside LRU and the best that is possible
};

struct NamedCurve {
  std::string name;
  MissRatioCurve curve;  // capacities in pages
};

struct MissEstimate {
  std::uint64_t references = 0;
  // The first so many are all that the other curves than that of LRU know: fewer than `references`
  // where the sample would have become too large.
  std::uint64_t simulated_references = 0;
  double pages = 0;          // that the trace uses
  double hot_pages = 0;      // the fewest that take 90 % of the references
  double sampled_share = 1;  // of the pages, that the estimate rests on; 1: all, it is exact
  MissRatioCurve lru;
  std::vector<NamedCurve> others;         // the experts as asked for, then "best possible"
  std::vector<std::uint64_t> capacities;  // in pages, each twice the one before, to all pages
};

inline constexpr const char* kBestPossible = "best possible";

// Reads the trace to its end. Errors: those of the trace; kInvalid for an unknown expert.
Result<MissEstimate> estimate_misses(TraceSource& trace, const MissOptions& options);

}  // namespace cairn::cli
