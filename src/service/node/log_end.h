// SPDX-License-Identifier: Apache-2.0
// The end of a node's durable log, with the node. A log that has failed has older bytes of files
// that the store has by then, which the next node or `cairn recover` would bring back.
//
// Thread safety: the composing thread's, when nothing uses the log any more.
#pragma once

#include "base/node_config.h"
#include "memory/tiers/node_memory.h"
#include "service/logged_files/node_log.h"

namespace cairn::node {

// Voids what a failed log has of the files of this node, if all of them are durable in their
// stores; then programs that go on without the node concern the log no more.
// Returns: false where the log still has that; the node's log says what to do.
bool end_log(const NodeConfig& config, const NodeMemory& memory, NodeLog* log, bool is_all_durable);

}  // namespace cairn::node
