// SPDX-License-Identifier: Apache-2.0
#include "service/rescue/process_look.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/process/unique_fd.h"

namespace cairn::node {

bool ProcessLook::is_gone(Owner owner) const {
  if (owner.slot() == ClientSlot::kOfService || owner.slot() >= memory_.slot_count()) return false;
  const pid_t pid = memory_.slot(owner.slot()).pid.load();
  if (pid <= 0) return false;
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  pollfd entry{process.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace cairn::node
