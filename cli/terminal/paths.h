// SPDX-License-Identifier: Apache-2.0
// Names of files as the command line gives them.
//
// Thread safety: they ask for the process's working directory.
#pragma once

#include <string>

namespace cairn::cli {

// Without links where the file exists; else the working directory and the path as it is.
std::string absolute_path(const std::string& path);

// What comes behind the last slash.
std::string base_name(const std::string& path);

// The reason why Cairn cannot buffer the files of a directory, which the user gave as `text` and
// which is `path`; empty: none.
std::string buffering_problem(const std::string& text, const std::string& path);

// Throws Failure when it is gone or not accessible.
std::string working_directory();

}  // namespace cairn::cli
