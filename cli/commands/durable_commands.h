// SPDX-License-Identifier: Apache-2.0
//
// The commands for durable tiers at rest: `cairn recover` and `cairn check`. Without a directory
// they take the durable tier of the configuration.
//
// Thread safety: one thread. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

// Brings what the tiers' logs hold to the backing store. Returns: 0, or kExitNotStored when
// something is not at its place.
int command_recover(const Arguments& arguments);

// Verifies the tiers' logs. Returns: 0, or kExitNotStored when something durable is damaged, or is
// left to repair.
int command_check(const Arguments& arguments);

}  // namespace cairn::cli
