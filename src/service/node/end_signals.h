// SPDX-License-Identifier: Apache-2.0
// The signals by which a user asks for the end of a node, SIGTERM and SIGINT.
//
// The keeper passes on what it gets. So one signal to all processes of a node (its group, its
// cgroup) comes twice, and counts once: those that come straight and those by way of the keeper
// are counted apart, and the larger number is how often the user has asked.
//
// Thread safety: one thread. Ownership: owns the descriptor.
#pragma once

#include <sys/types.h>

#include <utility>

#include "service/process/unique_fd.h"

namespace cairn::node {

class EndSignals {
 public:
  // All threads leave the signals to the one that reads them; SIGHUP and SIGPIPE mean nothing to a
  // service. Empty when the system refuses.
  static UniqueFd watch();
  // `source` is what signalfd(2) returns, not blocking; `keeper` is 0 where there is none.
  EndSignals(UniqueFd source, pid_t keeper) : source_(std::move(source)), keeper_(keeper) {}

  // Readable when signals have come that nobody has looked at.
  int descriptor() const { return source_.get(); }
  // Whether the user has asked more often than take() has returned true.
  bool is_asking();
  // The same, and takes one of them.
  bool take();

 private:
  void read_all();

  UniqueFd source_;
  const pid_t keeper_;
  unsigned straight_ = 0;
  unsigned passed_on_ = 0;
  unsigned taken_ = 0;
};

}  // namespace cairn::node
