// SPDX-License-Identifier: Apache-2.0
//
// The grammar of the `cairn` command: which subcommands and flags there are, and what their help
// says.
//
// The command builds only the parser of the subcommand that it runs, because scripts start
// `cairn run` by the hundred.
//
// Thread safety: one per process. Ownership: nothing is kept.
#pragma once

#include <string>
#include <vector>

namespace cairn::cli {

// Returns: the exit status. Prints every failure itself; lets no exception out.
int run_command_line(const std::vector<std::string>& arguments);

}  // namespace cairn::cli
