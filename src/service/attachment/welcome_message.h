// SPDX-License-Identifier: Apache-2.0
// The answer to a greeting that asks for a slot: the slot, and the node's memory.
//
// Thread safety: a function without state.
#pragma once

#include "memory/tiers/node_memory.h"

namespace cairn::node {

// False when the other end is gone.
bool send_welcome(const NodeMemory& memory, Owner owner, int socket);

}  // namespace cairn::node
