// SPDX-License-Identifier: Apache-2.0
//
// `cairn heatmap` and `cairn trace`: what the node has learned of the programs' accesses.
//
// Thread safety: pure functions but for what they print. Errors: Failure.
#pragma once

#include "cli/arguments.h"

namespace cairn::cli {

int command_declare(const Arguments& arguments);
int command_heatmap(const Arguments& arguments);
int command_trace(const Arguments& arguments);
// `cairn trace replay`, without these words.
int replay_trace(const Arguments& arguments);

}  // namespace cairn::cli
