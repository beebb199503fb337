// SPDX-License-Identifier: Apache-2.0
//
// The socket on which a node service takes commands: connecting to it, and whether anybody answers.
//
// Thread safety: stateless functions. Ownership: the caller closes the descriptor.
#pragma once

#include <string>

namespace cairn::cli {

// Returns: a connected descriptor, or -1 with errno set.
int connect_to_node(const std::string& socket_path);

// True when a service accepts connections on the socket.
bool node_answers(const std::string& socket_path);

}  // namespace cairn::cli
