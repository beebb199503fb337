// SPDX-License-Identifier: Apache-2.0
//
// What of a program can be buffered and what cannot, found by looking at its file and its
// libraries.
//
// Thread safety: reads the system; runs the dynamic linker's own "--list". Ownership: results are
// values.
#pragma once

#include <string>
#include <vector>

#include "cli/launch/elf_file.h"

namespace cairn::cli {

struct UncoveredSymbol {
  std::string name;
  std::string file;  // which of the program's files imports it
};

struct ProgramCheck {
  std::string path;                       // the file that decides: of a script, its interpreter
  std::vector<std::string> script_chain;  // the scripts that lead to it, outermost first
  bool can_be_buffered = false;
  // Why the library cannot be loaded into it, as the end of a sentence that begins with the
  // program: "is statically linked". Empty when it can.
  std::string reason;
  std::vector<UncoveredSymbol> uncovered;
  std::vector<std::string> notes;  // what to know although it can be buffered
  size_t libraries_checked = 0;
};

// Requires: `path` is an existing executable file. `covered` are the symbols that the preload
// library exports, sorted; empty when it is not installed, which skips that part. Also looks into
// the program's libraries.
ProgramCheck check_program(const std::string& path, const std::vector<std::string>& covered);

// The same, as far as `reason`: whether the library can be loaded into the program at all.
ProgramCheck check_loading(const std::string& path);

// The name of an HDF5 that the program is linked to and that is too old for Cairn's connector;
// empty where there is none. Follows scripts as check_program() does.
std::string old_hdf5_of(const std::string& path);

// The calls of libc that read or change file data, sizes, times or descriptors, and so must be
// covered; sorted. Calls on names alone (mkdir, opendir) need no cover, because the kernel keeps
// the names.
const std::vector<std::string>& data_symbols();

// Members of data_symbols() that `imported` has and `covered` has not. Both sorted.
std::vector<std::string> uncovered_symbols(const std::vector<std::string>& imported,
                                           const std::vector<std::string>& covered);

}  // namespace cairn::cli
