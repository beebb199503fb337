// SPDX-License-Identifier: Apache-2.0
// Tells a waiter whether a process of the node is gone, when the service cannot because it is dead
// itself and nobody follows it.
//
// While the keeper of the service lives, another service follows a dead one, and everybody waits
// for that: it advances the generation of the service's slot, which all waits look at. A connection
// that is closed then says nothing of the service.
//
// The kernel closes the service's end of a connection when the last of its threads has ended, and
// so after every system call of theirs that reads or writes the arena. Only writes to pool files
// that were given to io_uring may still be under way then: they read the arena, and go to buckets
// that no block is in and that nobody but the service could free.
//
// Thread safety: any thread. Ownership: borrows everything.
#pragma once

#include <cstdint>

#include "memory/tiers/node_memory.h"

namespace cairn {

// A process's connection to its service. The inode tells that the number still is the socket: the
// program may have closed it behind our back and have opened something else.
struct ServiceConnection {
  int socket = -1;
  std::uint64_t inode = 0;

  static ServiceConnection of(int socket);
  // The service has ended. False when that cannot be said.
  bool is_hung_up() const;
  // The number is the socket no more: nothing can be said from now on.
  bool is_lost() const;
};

// Whether the service is dead for good, and `owner` is the service or a process that has ended
// since. The caller is the process `self`, in whose numbering of processes the service's must be
// for the latter to be found out.
bool is_gone_with_service(const NodeMemory& memory, const ServiceConnection& connection, Owner self,
                          Owner owner);

}  // namespace cairn
