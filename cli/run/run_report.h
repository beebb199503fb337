// SPDX-License-Identifier: Apache-2.0
//
// What a run says at its end: at most ten lines for people, or one JSON object for scripts.
//
// Thread safety: pure functions. Ownership: results are values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/node/control_client.h"

namespace cairn::cli {

// What `cairn advise` foretold of the seconds that programs wait for I/O, or, where the node does
// not see that, of the whole run; the interval has 9 of 10.
struct Foretold {
  double seconds = 0;
  double low = 0;
  double high = 0;
  bool is_of_run = false;
};

struct RunOutcome {
  std::string node;
  bool private_node = false;
  std::string run_id;
  std::vector<std::string> command_line;
  double wall_seconds = 0;
  int exit_status = 0;        // of the program, 128 + signal when it was killed
  int killed_by = 0;          // the signal, 0 for none
  Json end = Json::object();  // the reply to run-end: stored, unstored, report
  // Why the library was never loaded into the program: "is statically linked". Empty when it was.
  std::string not_loaded_reason;
  // The library of an HDF5 that cannot load the connector, where arrays were wanted.
  std::string old_hdf5 = {};
  std::optional<Foretold> foretold = {};
};

// True when there is nothing worth a line: a short program without I/O of ours, everything stored.
bool is_trivial(const RunOutcome& outcome);

// The lines, without the "cairn: " prefix; files that are not stored are not among them.
std::vector<std::string> report_lines(const RunOutcome& outcome);

// Why a file of the list of unstored ones is not stored, with the ranges that its tier has lost.
std::string unstored_reason(const Json& file);

// Names the files that are not stored and the command that retries. `unstored` and `unstored_total`
// as in the control protocol.
std::vector<std::string> unstored_lines(const std::string& node, const Json& unstored,
                                        uint64_t unstored_total);
// What a durable tier has of those files besides. Nothing without one.
std::vector<std::string> kept_lines(const std::string& node, const Json& kept);

// For --report-json.
Json report_json(const RunOutcome& outcome, int final_exit_status);

}  // namespace cairn::cli
