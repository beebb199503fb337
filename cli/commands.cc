// SPDX-License-Identifier: Apache-2.0
//
// The entry of lib/cairn/commands.so.
#include <string>
#include <type_traits>
#include <vector>

#include "cli/commands/command_line.h"
#include "cli/commands/commands_library.h"

// Debian's archive of yaml-cpp is made for programs, and addresses this variable of libc as if it
// were in the same file. The linker takes that in a shared object only where it is. This one says
// that there may be several threads, so the archive counts its references atomically.
extern "C" {
// NOLINTNEXTLINE(readability-identifier-naming,bugprone-reserved-identifier): glibc has named it.
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
}

extern "C" __attribute__((visibility("default"))) int cairn_commands(int argument_count,
                                                                     char** arguments) {
  return cairn::cli::run_command_line(std::vector<std::string>(
      arguments + (argument_count > 0 ? 1 : 0), arguments + argument_count));
}

static_assert(std::is_same_v<cairn::cli::CairnCommands, decltype(&cairn_commands)>);
