// SPDX-License-Identifier: Apache-2.0
// A new keeper for a service whose keeper has been killed.
//
// The service watches its keeper. When that is gone, it makes a child that shares its table of
// descriptors, as the keeper did, and waits: the standby. The service has many threads by then, so
// the child may call nothing but the kernel. When the service dies, the standby keeps all
// descriptors open and executes the program anew (exec(2) copies the shared table): what comes out
// is a keeper with a fresh image, one thread, and the kept memory as a descriptor, which starts a
// successor.
//
//   dies                       who goes on
//   the keeper                 the service makes a standby, within a millisecond
//   the standby                the service makes another one
//   the service                the keeper, or the standby as the keeper, starts a successor
//   both at the same instant   nobody: the clients (frontends/client/dead_service.h)
//
// Thread safety: start() and stop() by the composing thread. Ownership: the standby is this
// process's child, and ends after it.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "service/keeping/keeper.h"
#include "service/process/unique_fd.h"

namespace cairn::node {

class KeeperWatch {
 public:
  // `arguments`: of the program that the standby executes; the number of the kept memory's
  // descriptor follows them. `on_change` hears the number of each new keeper, 0 when there is none
  // for now; from the watching thread.
  KeeperWatch(const Succession& succession, std::vector<std::string> arguments,
              std::function<void(pid_t)> on_change);
  ~KeeperWatch() { stop(); }
  KeeperWatch(const KeeperWatch&) = delete;
  KeeperWatch& operator=(const KeeperWatch&) = delete;

  // Requires: the process's keeper is its parent, or has died.
  void start();
  // The service ends by itself.
  void stop();

 private:
  void watch();
  pid_t make_standby() const;

  KeptLife& life_;
  const int memory_fd_;
  pid_t keeper_;
  const pid_t first_parent_;
  const std::vector<std::string> arguments_;
  const std::function<void(pid_t)> on_change_;
  UniqueFd stop_event_;
  // The standby waits for it in the shared table: open as long as this process lives.
  UniqueFd self_;
  std::thread thread_;
};

}  // namespace cairn::node
