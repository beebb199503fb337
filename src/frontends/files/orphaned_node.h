// SPDX-License-Identifier: Apache-2.0
// Keeper and service have died in one instant: nobody is left to store what is dirty, and no
// successor comes. Each process that finds out stores what it has open for writing, through its own
// descriptors, and all write through from then on. What nobody has open any more is lost, unless it
// is in a durable tier.
//
// A process finds out when it opens, closes or stores a file, or by one of many writes; a look is
// a few system calls, at most once in kEveryMs.
//
// Thread safety: any thread. Ownership: none.
#pragma once

namespace cairn {

// True once in a process: the node is lost, and what this process has open is its own to store
// (look_after_node(), frontends/files/file_closing.h).
bool notice_lost_node();

}  // namespace cairn
