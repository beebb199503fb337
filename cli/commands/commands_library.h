// SPDX-License-Identifier: Apache-2.0
//
// The boundary between bin/cairn and lib/cairn/commands.so, which has all commands.
//
// The parser of flags, the reader of YAML and the node service take the dynamic linker and their
// own initialisers longer than a run on a running node takes in all, and scripts start such runs by
// the hundred. So bin/cairn has only what these need (cli/run/plain_run.h).
//
// No C++ object and no exception crosses: both sides have a C++ runtime of their own.
//
// Thread safety: called once.
#pragma once

namespace cairn::cli {

// Takes the arguments of main(). Returns: the exit status.
using CairnCommands = int (*)(int argument_count, char** arguments);

inline constexpr const char* kCommandsEntryName = "cairn_commands";

}  // namespace cairn::cli
