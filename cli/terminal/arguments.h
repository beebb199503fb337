// SPDX-License-Identifier: Apache-2.0
// Reading a command's words: CLI11 with this program's way of saying what is wrong.
//
// Thread safety: pure functions. Errors: Failure with the usage; HelpShown when help was wanted.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace cairn::cli {

using Arguments = std::vector<std::string>;

// Throws to end a command whose help was printed.
struct HelpShown {};

inline constexpr const char* kNodeHelp = "The node (default: that of this run, else the only one)";

// `usage` replaces CLI11's own line where that would not say enough.
void parse(CLI::App& app, const Arguments& arguments, const char* usage = "");

// Splits "OPTIONS [--] PROGRAM ARGUMENTS", parses the options and returns the rest.
Arguments parse_before_program(CLI::App& app, const Arguments& arguments, const char* usage);

// Flags that may be given several times, one value each, so that a program's name is never taken
// for one.
void add_list(CLI::App& app, const char* names, std::vector<std::string>& values, const char* help,
              const char* type);
void add_text(CLI::App& app, const char* names, std::string& value, const char* help,
              const char* type);

}  // namespace cairn::cli
