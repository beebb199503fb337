// SPDX-License-Identifier: Apache-2.0
// The node service: owns the tiers and everything that happens in the background, from start to the
// last drain.
//
// Thread safety: one service per process. Ownership: creates the sockets, the shared memory and the
// pool files, and takes all of them away again at its end, but for the node directory itself, which
// the launcher made.
#pragma once

#include "base/node_config.h"

namespace cairn::node {

// Runs the service until a command or a signal ends it (control command "shutdown", SIGTERM,
// SIGINT) and everything is stored. Tells config.ready_fd "ready\n", or in one line why it cannot
// start.
// Returns: the exit status of the process: 0; 1 when it could not start; 74 when it was made to end
// with data unstored.
int run_service(const NodeConfig& config);

// The same in a child of this process, which keeps the node when the child is killed: another one
// takes over (service/keeping/keeper.h). Requires: one thread.
// Returns: twice, in the child and in the keeper, each time the exit status of the process.
int run_kept_service(const NodeConfig& config);

// The same after the death of a service and of its keeper, whose descriptors this process has
// (service/keeping/standby.h); `kept_memory` is one of them.
int run_succeeding_service(const NodeConfig& config, int kept_memory);

}  // namespace cairn::node
