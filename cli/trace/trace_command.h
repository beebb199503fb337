// SPDX-License-Identifier: Apache-2.0
//
// `cairn trace`: a node records accesses, the command makes, shows and replays traces.
//
// Thread safety: one per process. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_trace(const Arguments& arguments);
// `cairn trace replay`, without these words.
int replay_trace(const Arguments& arguments);
// `cairn trace misses`, without these words.
int trace_misses(const Arguments& arguments);
// `cairn trace make`, without these words.
int trace_make(const Arguments& arguments);

}  // namespace cairn::cli
