// SPDX-License-Identifier: Apache-2.0
//
// What a report says first: what I/O took of the run, and how long the run would have taken
// without Cairn, where that can be known.
//
// The estimate takes what a run spent outside of I/O as given, and the store as fast as it was
// measured. At least, everything that the run reads again comes from the kernel's cache and writes
// cost nothing: the store gives what it gave in this run. At most, each byte that is read or
// written goes to the store while the program waits. Both ends allow for a store that is a tenth
// faster or slower than measured. Several processes wait side by side: I/O of the run is the sum
// over its processes divided by their number.
//
// Thread safety: pure functions. Units: seconds.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cairn::cli {

struct TimeEstimate {
  double low = 0;
  double high = 0;
  double middle() const { return (low + high) / 2; }
};

struct Verdict {
  std::string sentence;
  std::optional<TimeEstimate> without;
  std::string why_not;               // there is no estimate
  std::vector<std::string> remarks;  // the run never ended, data is not stored, ...
};

// `run`: a document of the schema cairn-run-1.
Verdict verdict_of(const nlohmann::json& run);

// What the run counted: from the report of its end, else from its last sample.
struct RunTotals {
  double wall = 0;
  double io = 0;  // of all processes
  double read = 0;
  double written = 0;
  double missed = 0;
  double processes = 1;  // those that waited for I/O
};
RunTotals totals_of(const nlohmann::json& run);

// How long the run took, or has taken when it was last heard of.
double run_seconds(const nlohmann::json& run);

}  // namespace cairn::cli
