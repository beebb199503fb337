// SPDX-License-Identifier: Apache-2.0
//
// `cairn top`: what a node does, live, as one screen, or as lines of figures.
//
// Thread safety: one per process. Ownership: nothing is kept. Returns the exit status; throws
// Failure when there is no such node, or nothing that it can be shown on.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_top(const Arguments& arguments);

}  // namespace cairn::cli
