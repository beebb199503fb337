// SPDX-License-Identifier: Apache-2.0
// The process that keeps a node when its service dies: it does nothing but wait. When the service
// has been killed (the kernel's out-of-memory killer, a crash), the keeper starts another one at
// once, which goes on with what the dead one had.
//
// The keeper is the service's parent, and both share one table of descriptors (clone(2),
// CLONE_FILES). So whatever the service opens or receives is the keeper's in the same instant,
// without a message: both memory files, the pool files, the listeners and their backlogs, the
// clients' connections with their unread messages, and the backing files of dirty data. No
// connection closes, so clients notice nothing but a wait. A service and its successor are forked,
// never executed: exec(2) would part them from the table.
//
//   the service      the keeper
//   ends by itself   ends with its exit status; also when it is killed after all its work
//   is killed        starts a successor; after deaths_max deaths within within_ns a rescue, which
//                    stores and saves what is dirty and ends the node
//   throws, or exits before its work is done (KeptLife::done): the same as one that is killed
//   (a rescue is killed: the next one goes around what it died of, rescues_max times)
//   (the machine has no process for a successor or a rescue: the keeper is the rescue)
//
// SIGTERM and SIGINT to the keeper are passed on to the service.
//
// If the keeper is killed, the service starts another one (service/keeping/standby.h). If both are
// killed at once, their descriptors are closed, and the clients go on alone
// (frontends/client/dead_service.h).
//
// Thread safety: called once, by a process with one thread. Ownership: the child is the caller's
// image.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "base/status.h"
#include "service/keeping/kept_life.h"
#include "service/keeping/kept_memory.h"

namespace cairn::node {

struct Succession {
  KeptMemory memory;
  KeptLife* life = nullptr;
  pid_t keeper = 0;  // 0: nobody would start a successor
  // A service before this one was killed: what it had is to be taken over.
  bool is_successor() const { return life->restarts.load() != 0; }

  // For the first service, with or without a keeper.
  static Result<Succession> begin();
  // For a keeper of a new image, after the death of a service and of its keeper.
  static Result<Succession> of_dead(int memory_fd);
};

struct KeeperLimits {
  // Deaths within the time after which there is no use in another try.
  unsigned deaths_max = 3;
  std::int64_t within_ns = 60'000'000'000;
  // Rescues that may die.
  unsigned rescues_max = 16;
  // Tries to get a process for a successor, ten a second.
  unsigned fork_tries_max = 300;
};

// What the children of a keeper do. Each returns the exit status of its process.
struct KeptWork {
  std::function<int(Succession&)> serve;
  std::function<int(Succession&)> rescue;  // empty: there is none
};

// Runs `serve` in a child, again and again until it ends by itself or dies too often; then
// `rescue`. Returns in the child what that returned, and in the keeper the exit status of the last
// child: both are the exit status of their process. A death that nobody follows is 128 + its
// signal.
int keep_service(const KeeperLimits& limits, const KeptWork& work);
// The same by a keeper of a new image, for a service that has just died.
int keep_successor(const KeeperLimits& limits, Succession succession, const KeptWork& work);

}  // namespace cairn::node
