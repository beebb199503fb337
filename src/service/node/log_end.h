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

struct LogEnd {
  bool is_all_durable = false;  // files are, in their stores
  bool is_empty = false;        // the log has nothing of any file
};

// Voids what a failed log has of the files of this node, if all of them are durable in their
// stores. With an empty log, programs that go on without the node are nobody's concern any more;
// what an earlier recovery has kept there is the next one's, which needs the note of them.
// Returns: false where a failed log still has older bytes; the node's log says what to do.
bool end_log(const NodeConfig& config, const NodeMemory& memory, NodeLog* log, const LogEnd& end);

}  // namespace cairn::node
