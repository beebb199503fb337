// SPDX-License-Identifier: Apache-2.0
//
// The flags of a command that set options, from the option table.
//
// Thread safety: pure functions. Ownership: the settings outlive the parser's run.
#pragma once

#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/configuration/option.h"
#include "cli/configuration/settings.h"

namespace cairn::cli {

// Adds --config and the flags that all commands offer, and those that only this one offers.
void add_setting_flags(CLI::App& app, CommandLineSettings& settings, FlagOffer command);

// Whether the command line says something of an option. A single empty text says nothing, so that a
// script may pass a variable that is not set.
bool is_given(const Option& option, const std::vector<std::string>& values);

// Returns: the first flag among the settings that a run cannot bring to a running node, or an empty
// text.
std::string_view node_flag(const CommandLineSettings& settings);

}  // namespace cairn::cli
