// SPDX-License-Identifier: Apache-2.0
//
// `cairn declare` and `cairn heatmap`: the node learns of accesses to come, and shows what it has
// learned of those it saw.
//
// Thread safety: one per process. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_declare(const Arguments& arguments);
int command_heatmap(const Arguments& arguments);

}  // namespace cairn::cli
