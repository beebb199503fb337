// SPDX-License-Identifier: Apache-2.0
//
// Finds the program of a run the way a shell does, before anything is started for it.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include <string>

namespace cairn::cli {

struct FoundProgram {
  std::string path;     // what to execute; empty when there is none
  int exit_status = 0;  // 126 or 127 as a shell gives when there is none
  std::string message;  // why there is none, naming the program
};

// A name with a slash is a path; the function looks for any other name in $PATH.
FoundProgram find_program(const std::string& name);

}  // namespace cairn::cli
