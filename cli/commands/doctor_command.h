// SPDX-License-Identifier: Apache-2.0
//
// `cairn doctor [CMD]`: is the machine ready, and what of a program can be buffered.
//
// Thread safety: one per process. Ownership: results are values.
#pragma once

#include <string>
#include <vector>

#include "cli/configuration/machine.h"

namespace cairn::cli {

enum class Verdict {
  kGood,
  kCouldBeBetter,  // works, slower or with a limit
  kBad,            // Cairn does not work as it is
};

struct Finding {
  Verdict verdict = Verdict::kGood;
  std::string subject;
  std::string text;
  std::string remedy;  // what the administrator or the user would set, and what it is worth
};

std::vector<Finding> examine_machine(const MachineRoots& roots = {});

std::vector<Finding> examine_program(const std::string& name);

// Prints the findings. Returns: 0 unless one is bad, then 1; 126 or 127 when the program is not
// there.
int run_doctor(const std::vector<std::string>& command_line);

}  // namespace cairn::cli
