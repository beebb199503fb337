// SPDX-License-Identifier: Apache-2.0
//
// The one table of all options: it yields the configuration file's keys, the environment variables,
// the command-line flags, `cairn config show` and docs/configuration.md.
//
// To add an option, add its field to NodeConfig (base/node_config.h) and its row to the table.
//
// Thread safety: constant data and pure functions.
#pragma once

#include <span>
#include <string_view>

#include "cli/configuration/option.h"

namespace cairn::cli {

std::span<const Option> option_table();

// Returns: null when no option has this name ("ram.capacity").
const Option* find_option(std::string_view name);

// Requires: there is an option of this name.
const Option& option_named(std::string_view name);

}  // namespace cairn::cli
