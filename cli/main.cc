// SPDX-License-Identifier: Apache-2.0
//
// The `cairn` command.
#include "cli/commands/command_line.h"

int main(int argument_count, char** arguments) {
  return cairn::cli::run_command_line(std::vector<std::string>(
      arguments + (argument_count > 0 ? 1 : 0), arguments + argument_count));
}
