// SPDX-License-Identifier: Apache-2.0
//
// Plays a trace: opens, reads, writes and closes files with plain POSIX calls, as the programs of
// the trace did, and knows nothing of Cairn: under `cairn run` it is a program like any other.
//
// One process plays everything in the order of the trace. With more of them, each plays its part of
// the ranks in their order, while the others go on with theirs. Each rank opens the files that it
// accesses itself, so that it is a reader of its own in either case.
//
// Thread safety: none. Ownership: descriptors and a buffer. Errors: Failure.
#pragma once

#include <cstdint>
#include <string>

#include "cli/trace/played_files.h"
#include "cli/trace/played_trace.h"

namespace cairn::cli {

struct PlayPace {
  bool keeps_times = false;      // nothing begins earlier than it was recorded
  std::int64_t pause_ns = 0;     // after each access
  double pause_ns_per_byte = 0;  // of the access, in addition
};

struct PlayOptions {
  std::string trace;
  PlaySelection selection;
  PlayPace pace;
  unsigned processes = 1;
  bool verifies = false;
};

struct PlayTotals {
  std::uint64_t opens = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t read_bytes = 0;
  std::uint64_t written_bytes = 0;
  std::int64_t io_ns = 0;    // in calls, of all processes
  std::int64_t wall_ns = 0;  // of the longest
  unsigned processes = 1;

  void add(const PlayTotals& other);
};

// The files are prepared. `options.processes` may be more than the trace has.
PlayTotals play_trace(const PlayOptions& options, const PlayPlan& plan, const PlayedFiles& files);

}  // namespace cairn::cli
