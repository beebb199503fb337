// SPDX-License-Identifier: Apache-2.0
// Reads a command's words with CLI11, and reports mistakes as this program does.
//
// Thread safety: pure functions. Errors: Failure with the usage; HelpShown when help was wanted.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace cairn::cli {

using Arguments = std::vector<std::string>;

inline constexpr const char* kNodeHelp = "The node (default: that of this run, else the only one)";

// `usage` replaces CLI11's own line where that would not say enough.
void parse(CLI::App& app, const Arguments& arguments, const char* usage = "");

// The first word, which names a command (empty: there is none), and the words after it.
struct VerbWords {
  std::string verb;
  Arguments rest;
};
VerbWords split_verb(const Arguments& arguments);

// Splits "OPTIONS [--] PROGRAM ARGUMENTS", parses the options and returns the rest.
Arguments parse_before_program(CLI::App& app, const Arguments& arguments, const char* usage);

// A flag that a user may give several times, with one value each, so that the parser takes no name
// of a program for a value.
CLI::Option* add_list(CLI::App& app, const char* names, std::vector<std::string>& values,
                      const char* help, const char* type);
// A flag with one value. Given twice it is a mistake.
CLI::Option* add_text(CLI::App& app, const char* names, std::string& value, const char* help,
                      const char* type);
// The same, where no value and an empty one differ: `values` holds none or one.
CLI::Option* add_one(CLI::App& app, const char* names, std::vector<std::string>& values,
                     const char* help, const char* type);
// CLI::Range() takes "nan" for a number that is in every range.
CLI::Validator number_between(double least, double most);

}  // namespace cairn::cli
