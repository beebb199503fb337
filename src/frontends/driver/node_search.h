// SPDX-License-Identifier: Apache-2.0
// The node that a program without `cairn run` belongs to, as the command line would choose it.
//
//   CAIRN_SOCKET      the client socket of a node, as a run has it
//   CAIRN_NODE_NAME   the name of a node (`cairn up --name`), or its directory
//   neither           the one node of this user that `cairn up` has started, if it is the only one
//
// Nodes of a single run are found by name alone, because they end with their run.
//
// Thread safety: any thread, while nobody changes the environment.
#pragma once

#include <sys/un.h>

namespace cairn::driver {

struct NodeSocket {
  char path[sizeof(sockaddr_un::sun_path)];
};

// False where there is no node: nobody answers, and no keeper is about to start a service anew.
bool find_node(NodeSocket& socket);

}  // namespace cairn::driver
