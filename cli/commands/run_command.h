// SPDX-License-Identifier: Apache-2.0
//
// `cairn run`: a program, a node for it, and the certainty at the end that everything is stored.
//
// Thread safety: one per process. Ownership: ends a private node that it started; never a named
// one.
#pragma once

#include <string>
#include <vector>

#include "cli/configuration/settings.h"
#include "cli/launch/signal_watch.h"

namespace cairn::cli {

struct RunOptions {
  std::string node;  // empty: a private one, or that of the run this process is part of
  CommandLineSettings settings;
  bool allow_io_uring = false;
  std::string arrays = "auto";  // off, auto, on: whether HDF5 loads the connector
  bool verbose = false;
  std::string report;  // the page; empty: none, and the run is not sampled
  bool force = false;  // the page may replace a file that is no page
  std::string report_json;
  // Against other runs, for its share of the tiers and of the backing store; 0: as others.
  unsigned weight = 0;
  std::vector<std::string> array;         // hints, as take_array_hints() reads them
  std::vector<std::string> reserve;       // SIZE of the fastest tier, or TIER=SIZE
  std::vector<std::string> command_line;  // the program and its arguments, at least one
};

// Returns: the exit status, as docs/reference.md says.
// Errors: throws Failure when the program was not started at all.
int run_program(const RunOptions& options);
// The same in a command that watches signals already, as a process does so once.
int run_program(const RunOptions& options, SignalWatch& signals);

}  // namespace cairn::cli
