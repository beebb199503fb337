// SPDX-License-Identifier: Apache-2.0
//
// The files that a command is to work on, as the user names them.
//
// Thread safety: one thread. Errors: Failure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"

namespace cairn::cli {

// Files, directories, patterns, and a list of them in a file ("-": standard input), one a line.
struct FileSelection {
  std::string node;
  std::vector<std::string> paths;
  std::string list_file;
};

// The options that all such commands have.
void add_files(CLI::App& app, FileSelection& files);

// The words, and the paths of the list. Errors: there are none of both.
std::vector<std::string> named_paths(const FileSelection& files);

// The whole path of something that exists.
std::string canonical(const std::string& path);

// Calls visit(path) for each regular file that is named or lies below a named directory, and
// visit_directory(path) for these directories and those below them.
void for_each_file(const std::vector<std::string>& paths,
                   const std::function<void(const std::string&)>& visit,
                   const std::function<void(const std::string&)>& visit_directory = nullptr);

}  // namespace cairn::cli
