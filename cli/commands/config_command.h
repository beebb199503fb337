// SPDX-License-Identifier: Apache-2.0
//
// `cairn config`: the configuration in force, or the reference of all options.
//
// Thread safety: one per process. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_config(const Arguments& arguments);

}  // namespace cairn::cli
