// SPDX-License-Identifier: Apache-2.0
//
// One run of a program on a private node that records what it accesses.
//
// Signals wait from the beginning to the end of the object, when its directory and its node are
// gone and those that have come take their effect. The program gets those that come while it runs.
//
// Thread safety: one per process. Ownership: the directory with trace and report, which it removes;
// the node, which it ends. Errors: Failure.
#pragma once

#include <string>
#include <vector>

#include "cli/configuration/settings.h"
#include "cli/launch/signal_watch.h"

namespace cairn::cli {

// For a trace; the caller removes it. Errors: Failure.
std::string make_trace_directory();

class RecordedRun {
 public:
  // Makes the directory.
  RecordedRun();
  ~RecordedRun();
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  // Runs the program to its end. Errors: throws Failure when it was not started, or when it failed,
  // as there is nothing to learn then.
  void execute(const CommandLineSettings& settings, const std::vector<std::string>& command_line);

  std::string trace() const { return directory_ + "/run.trace"; }
  // As measured; 0 when the report does not say.
  double seconds() const { return seconds_; }
  double io_seconds() const { return io_seconds_; }

 private:
  std::string report() const { return directory_ + "/report.json"; }
  void read_report();
  void fail_if_interrupted();

  SignalWatch signals_;  // before the directory
  std::string directory_;
  double seconds_ = 0;
  double io_seconds_ = 0;
};

}  // namespace cairn::cli
