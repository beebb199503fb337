// SPDX-License-Identifier: Apache-2.0
// What `cairn advise` foretold and what the runs then took: a line of JSON for each run, in a file
// of this user's (state_directory()). So its error on this machine can be looked up.
//
// Thread safety: several processes may add lines at a time. Ownership: values. Units: seconds.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cairn::cli {

struct ForetoldRun {
  std::string when;  // local time, "2026-11-28 13:14"
  std::string program;
  double expected = 0;
  double low = 0;
  double high = 0;
  double measured = 0;
  bool is_of_run = false;  // all of the numbers are of the whole run; else of its I/O
  int exit_status = 0;     // of the program; only those that ended well are compared

  // As a share of what was measured: 0.1 where ten percent too much was foretold.
  double error() const;
  bool is_inside() const { return low <= measured && measured <= high; }
};

class AdviceHistory {
 public:
  // The newest lines that are kept.
  static constexpr std::size_t kRunsMax = 1000;

  // Errors: Failure where there is no directory for it.
  AdviceHistory();

  // Sets `when`. Errors: Failure.
  void add(ForetoldRun run) const;
  // Oldest first; lines that are damaged are left out. Empty without a file. Errors: Failure.
  std::vector<ForetoldRun> runs() const;

 private:
  std::string path_;
};

// A table and what it comes to; a sentence where nothing was compared.
std::string history_text(const std::vector<ForetoldRun>& runs);
// Documented in docs/reference.md.
std::string history_json(const std::vector<ForetoldRun>& runs);

}  // namespace cairn::cli
