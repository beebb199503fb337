// SPDX-License-Identifier: Apache-2.0
//
// One program on one node: the node hears of it, it starts, ends, and everything is stored.
//
// Thread safety: one per process. Ownership: ends no node by itself; the caller says how.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/launch/program_start.h"
#include "cli/launch/signal_watch.h"
#include "cli/node/control_client.h"
#include "cli/node/drain_view.h"
#include "cli/run/rescue_news.h"
#include "cli/run/run_report.h"
#include "cli/terminal/failure.h"

namespace cairn::cli {

struct ProgramRunOptions {
  NodePaths node;
  std::string program_path;               // what to execute
  std::vector<std::string> command_line;  // the program's name as the user gave it, and arguments
  std::string preload_library;
  std::vector<std::string> buffer_directories;  // empty: the working directory
  std::vector<std::string> exclude;
  bool allow_io_uring = false;
  std::string arrays;          // as RunOptions has it
  bool report = true;          // lines for people at the end
  unsigned grace_seconds = 0;  // for what is left to be stored; 0: as long as it takes
  std::string report_json;     // the name of the file that report_descriptor is, for messages
  int report_descriptor = -1;
  // The node samples the run, and this is called at the end with what report_json() has and what
  // the node knows besides: a document of the schema cairn-run-1. Empty: nobody wants it.
  std::function<void(Json document)> make_page;
  // The time that was foretold of the run. `compare` is called at the end of a run that the
  // node has reported on.
  std::optional<Foretold> foretold;
  std::function<void(const RunOutcome& outcome)> compare;
  // It is wanted of runs that take so long; with 0, report_json() has what the node knows, too.
  double page_seconds_min = 0;
  // Fields of run-begin beside those that every run has.
  Json wishes = Json::object();
  // The program starts after the node's answer to run-begin.
  bool begins_first = false;
  // For a private node: ends it. Returns whether everything is stored indeed. Empty: the node
  // stays.
  std::function<bool()> end_node;
};

class ProgramRun {
 public:
  // Requires: both outlive the run.
  ProgramRun(const ProgramRunOptions& options, SignalWatch& signals)
      : options_(options), signals_(signals) {}

  // Tells the node of the run.
  // Errors: throws Failure; nothing has been started then.
  void begin();

  // Requires: begin() has returned. Returns: the exit status, as docs/reference.md says.
  int execute();

 private:
  void send_begin();
  int start_and_wait();
  void hear_of_begin();
  int wait_for_program(pid_t process);
  bool interrupted_again();
  void begin_grace(bool has_ended);
  Json end_request() const;
  int finish();
  int finish_stored_or_not(bool stored);
  int finish_interrupted();
  int finish_unconfirmed(const Failure& failure);
  int finish_rescued(const RescueNews& news);
  void find_reason_not_loaded();
  void find_old_hdf5();
  bool end_node() const;
  bool wants_page() const;
  void take_history();
  void write_report(int exit_status) const;

  const ProgramRunOptions& options_;
  SignalWatch& signals_;
  std::optional<ControlClient> control_;
  std::optional<Json> began_;  // the node's answer to run-begin, once it has been read
  std::optional<Failure> begin_failure_;
  ProgramEnvironment environment_;
  std::vector<ScratchMount> scratch_;
  RunOutcome outcome_;
  Json history_ = Json::object();  // what the node knows beside the outcome
  DrainView view_;
  int interrupts_ = 0;
  double grace_began_ = 0;  // 0: not yet
  // Drains from the first signal on, while the program comes to its end.
  std::optional<ControlClient> early_drain_;
  bool has_told_of_wait_ = false;
};

}  // namespace cairn::cli
