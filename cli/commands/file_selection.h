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

// Files, directories, patterns where the command takes them, and a list of them in a file ("-":
// standard input), one a line.
struct FileSelection {
  std::string node;
  std::vector<std::string> paths;
  std::string list_file;
};

// The options that all such commands have.
void add_files(CLI::App& app, FileSelection& files);

// The words, and the paths of the list. Errors: there are none of both.
std::vector<std::string> named_paths(const FileSelection& files);

// The whole path of something that exists. Errors: Failure with the remedy.
std::string canonical(const std::string& path,
                      const char* remedy = "name an existing file or directory");

struct VisitedFiles {
  std::function<void(const std::string&)> file;       // a regular one, or whatever is named
  std::function<void(const std::string&)> directory;  // may be empty
};
// Visits the files that are named, the directories that are, and what lies below them. Links below
// them are not followed.
void for_each_file(const std::vector<std::string>& paths, const VisitedFiles& visit);

}  // namespace cairn::cli
