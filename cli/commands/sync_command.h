// SPDX-License-Identifier: Apache-2.0
//
// `cairn sync PATH...`: files that other programs have written are made durable, each at its own
// level, as if those had called fsync(2).
//
// Thread safety: one per process. Ownership: nothing is kept. Errors: Failure.
#pragma once

#include "cli/arguments/arguments.h"

namespace cairn::cli {

int command_sync(const Arguments& arguments);

// The hidden `cairn sync-here`, which `cairn sync` starts as a program of the node: it calls
// fsync() for each file whose path it reads, and says what came of it. Not for people, but harmless
// by hand.
inline constexpr const char* kSyncHere = "sync-here";
int command_sync_here(const Arguments& arguments);

}  // namespace cairn::cli
