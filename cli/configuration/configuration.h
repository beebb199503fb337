// SPDX-License-Identifier: Apache-2.0
//
// From the layers (defaults by looking, file, environment, command line) to one checked
// configuration.
//
// A later layer replaces an option of an earlier one as a whole. Every mistake of every layer is
// collected and reported in one Failure, each with its place.
//
// Thread safety: pure reads of the system. Ownership: results are values.
#pragma once

#include "cli/configuration/machine.h"
#include "cli/configuration/settings.h"

namespace cairn::cli {

// Errors: throws Failure that lists all mistakes.
Configuration resolve_configuration(const CommandLineSettings& command_line,
                                    ConfigurationScope scope = ConfigurationScope::kNode,
                                    const MachineRoots& roots = {});

}  // namespace cairn::cli
