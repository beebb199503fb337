// SPDX-License-Identifier: Apache-2.0
//
// The `cairn` command: runs a program on a running node itself, and opens lib/cairn/commands.so for
// all else.
#include <dlfcn.h>

#include <optional>
#include <string>
#include <vector>

#include "cli/commands/commands_library.h"
#include "cli/node/run_directory.h"
#include "cli/run/plain_run.h"
#include "cli/terminal/failure.h"

namespace {

using cairn::cli::Failure;

// Stays open: it is the rest of the process.
cairn::cli::CairnCommands open_commands() {
  const std::string path = cairn::cli::installed_file("lib/cairn/commands.so");
  void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* entry = library != nullptr ? ::dlsym(library, cairn::cli::kCommandsEntryName) : nullptr;
  if (entry != nullptr) return reinterpret_cast<cairn::cli::CairnCommands>(entry);
  const char* error = ::dlerror();
  throw Failure("the commands cannot be loaded: " + (error != nullptr ? error : path),
                "they belong beside the directory of the cairn command; build or install Cairn "
                "again");
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::string> words(arguments + (argument_count > 0 ? 1 : 0),
                                       arguments + argument_count);
  return cairn::cli::exit_status_of([&] {
    if (const auto plain = cairn::cli::find_plain_run(words))
      return cairn::cli::run_plainly(*plain);
    return open_commands()(argument_count, arguments);
  });
}
