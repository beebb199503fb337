// SPDX-License-Identifier: Apache-2.0
//
// `cairn run --node NAME -- PROGRAM`, which scripts write by the hundred, without what other
// commands need.
//
// The parser of flags, the option table and the reader of YAML are in lib/cairn/commands.so, which
// takes longer to load than such a run takes in all. This reads the flags that most of these runs
// have, and leaves the run to the other commands where it meets anything else: a flag or variable
// that it does not know, a node with files of its own, or a mistake. So every message about a
// mistake has one author.
//
// Thread safety: one per process. Ownership: results are values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/program_run.h"

namespace cairn::cli {

// The flags of a plain run, and its program.
struct PlainWords {
  std::string node;
  std::vector<std::string> buffer;
  std::vector<std::string> exclude;
  bool report = true;
  std::vector<std::string> command_line;
};

// `words` are those after `cairn`. Returns: nothing where only the parser can tell.
std::optional<PlainWords> take_plain_words(const std::vector<std::string>& words);

// Whether a variable ("NAME=value") may set an option of a run, which the option table then reads.
bool may_set_option(const char* variable);

// Returns: nothing where the run is not plain, or has a mistake.
std::optional<ProgramRunOptions> find_plain_run(const std::vector<std::string>& words);

// Returns: the exit status, as docs/reference.md says.
// Errors: throws Failure when the program was not started at all.
int run_plainly(const ProgramRunOptions& options);

}  // namespace cairn::cli
