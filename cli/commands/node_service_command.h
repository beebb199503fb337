// SPDX-License-Identifier: Apache-2.0
//
// The hidden `cairn node-service`: reads the resolved configuration that the launcher wrote and
// becomes the service. Not for people, but harmless by hand.
//
// Thread safety: one per process. Ownership: the service owns the process.
#pragma once

#include <string>

namespace cairn::cli {

struct NodeServiceOptions {
  std::string name;
  std::string config_file;
  int ready_descriptor = -1;
  int kept_memory = -1;  // the descriptor of what dead services have left; -1: there was none
};

// Returns: the exit status of the service. A configuration that does not resolve is reported to the
// ready descriptor, where the launcher waits for it.
int run_node_service(const NodeServiceOptions& options);

}  // namespace cairn::cli
