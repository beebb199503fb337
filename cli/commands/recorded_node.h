// SPDX-License-Identifier: Apache-2.0
//
// What the programs of a running node access for some seconds, as a trace for `cairn advise`.
//
// A node keeps no trace of what came before, only counters: those are shown beside the advice.
//
// Thread safety: one per process. Ownership: the directory with the trace, which it removes.
// Errors: Failure.
#pragma once

#include <string>

#include "cli/advice/advice_told.h"
#include "cli/launch/signal_watch.h"
#include "cli/node/run_directory.h"

namespace cairn::cli {

class RecordedNode {
 public:
  // Errors: there is no such node.
  explicit RecordedNode(const std::string& name);
  ~RecordedNode();
  RecordedNode(const RecordedNode&) = delete;
  RecordedNode& operator=(const RecordedNode&) = delete;

  // The configuration that it runs with.
  const std::string& config_file() const { return node_.config_file; }
  // Until so many seconds have passed, or SIGINT or the like comes. Errors: the node is being
  // recorded already; its programs have accessed nothing.
  advice::Workload record(double seconds);
  const LookedAtNode& looked_at() const { return looked_at_; }

 private:
  std::string trace() const { return directory_ + "/node.trace"; }
  void take_counters(double seconds);

  NodePaths node_;
  SignalWatch signals_;  // before the directory
  std::string directory_;
  LookedAtNode looked_at_;
};

}  // namespace cairn::cli
