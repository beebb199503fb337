// SPDX-License-Identifier: Apache-2.0
// Word in the folder of a durable log that programs have outlived the node, and store by themselves
// what is newer than the log: whatever changes in the store from then on is nobody's of the node.
//
//   a surviving program   before it first stores by itself: mark_orphaned()
//   recovery              orphaned_at_ns(): a file that has changed since is somebody else's
//                         (service/replay/found_file.h); afterwards the mark goes
//
// The mark is an empty file, and its time of modification says when. The node's processes were dead
// before it was made, so none of what they have stored is younger. A store whose clock runs behind
// the log's device is not told apart.
//
// Thread safety: any thread, any process. Ownership: none.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn {

inline constexpr const char* kOrphanMarkName = "orphaned";

// Makes the mark, durably, where the node has a log and has not ended in order. One that is there
// stays. Returns whether none is missing. Requires: the service stores nothing any more.
bool mark_orphaned(const NodeMemory& memory);

// When programs began to store by themselves, CLOCK_REALTIME; 0: none did. `path`: of the mark.
std::int64_t orphaned_at_ns(const char* path);

}  // namespace cairn
