// SPDX-License-Identifier: Apache-2.0
// What a node that starts on a durable tier does first: what an earlier one has left in the log
// goes to the store, before any program reads files there.
//
// Thread safety: none. Ownership: nothing is kept.
#pragma once

#include "base/node_config.h"
#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "service/node/heritage.h"

namespace cairn::node {

// Does nothing where no tier is durable, its log is empty, or a service of this node has done it
// (Heritage::log_replayed): one that dies at it has served nobody, and leaves it to the next.
// Tells the node's log of each file, and the launcher how many there are, and of each that is not
// simply at its place.
// A file that the log still owes bytes stays as it is, and no program of the node may use it.
// Errors: more of those than the memory has room for; another node uses the tier; the log is of
// another version, or damaged.
Status replay_at_start(const NodeConfig& config, const NodeMemory& memory, Owner self,
                       Heritage& heritage);

}  // namespace cairn::node
