// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/dead_service.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/system_call.h"
#include "frontends/client/descriptor_identity.h"

namespace cairn {
namespace {

// The events of the descriptor now: those of `events`, and those that poll always tells.
short poll_now(int fd, short events) {
  pollfd entry{fd, events, 0};
  const timespec at_once{0, 0};
  const long ready = sys::call(SYS_ppoll, sys::word(&entry), 1, sys::word(&at_once), 0, 0);
  return ready == 1 ? entry.revents : short{0};
}

// Also of one that nobody has waited for yet. A process that has the same number since is taken for
// the one that had it.
bool has_ended(pid_t pid) {
  const int fd = static_cast<int>(sys::call(SYS_pidfd_open, pid, 0));
  if (fd < 0) return fd == -ESRCH;
  const bool has_ended = (poll_now(fd, POLLIN) & POLLIN) != 0;
  sys::close(fd);
  return has_ended;
}

}  // namespace

ServiceConnection ServiceConnection::of(int socket) { return {socket, inode_of(socket)}; }

bool ServiceConnection::is_hung_up() const {
  return socket >= 0 && inode != 0 && (poll_now(socket, 0) & POLLHUP) != 0 &&
         inode_of(socket) == inode;
}

bool ServiceConnection::is_lost() const {
  return socket < 0 || inode == 0 || inode_of(socket) != inode;
}

bool is_gone_with_service(const NodeMemory& memory, const ServiceConnection& connection, Owner self,
                          Owner owner) {
  const bool knows_numbers = memory.slot(self.slot()).pid.load() == sys::getpid();
  const auto has_gone = [&](std::uint16_t slot) {
    const pid_t pid = memory.slot(slot).pid.load();
    return knows_numbers && pid > 0 && has_ended(pid);
  };
  const pid_t keeper = memory.service_board().keeper.load();
  const bool is_kept = knows_numbers && keeper > 0 && !has_ended(keeper);
  // Without a connection the number of the service's process has to do.
  const bool is_over = !is_kept && (connection.is_lost() ? has_gone(ClientSlot::kOfService)
                                                         : connection.is_hung_up());
  if (!is_over || owner.slot() == ClientSlot::kOfService) return is_over;
  return has_gone(owner.slot());
}

}  // namespace cairn
