// SPDX-License-Identifier: Apache-2.0
//
// Starts a node service as its own session and waits until it is ready; ends it and leaves nothing
// behind.
//
// Thread safety: one thread. Ownership: a LaunchedNode only names the service. The service of a
// named node lives on without it; that of a private node lives until this process has ended, and
// then until it holds nothing more.
#pragma once

#include <sys/types.h>

#include <string>

#include "cli/configuration/settings.h"
#include "cli/node/run_directory.h"

namespace cairn::cli {

struct LaunchedNode {
  NodePaths paths;
  pid_t service = -1;
  // For a private node: a pipe. When this process ends, however it does, the pipe closes, and the
  // service notices.
  int lifeline = -1;
};

// A free name for a private node: "run-<pid>", with "-2", "-3" appended where a former
// run of the same pid left its data behind.
std::string private_node_name();

// In the node's directory, for the records of runs that nothing keeps longer.
std::string records_directory(const NodePaths& paths);

// Creates the node directory, writes config.yaml, starts the service and waits for "ready".
// Errors: a second node of the same name, no permission, or the service's own reason; nothing is
// left behind.
LaunchedNode launch_node(const Configuration& configuration);

struct NodeEnd {
  bool has_ended = false;
  int exit_status = 0;     // of the service
  std::string last_error;  // of its log, where the status is not 0
};

// Waits so long until the service has ended, and removes the rest of its directory.
NodeEnd wait_for_end(const LaunchedNode& node, double seconds);

// The same for a service that is not a child of this process.
// Returns: false when it still runs after `seconds`.
bool wait_for_end(const NodePaths& paths, pid_t service, double seconds);

}  // namespace cairn::cli
