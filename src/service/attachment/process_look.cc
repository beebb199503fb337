// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/process_look.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "service/process/unique_fd.h"

namespace cairn::node {

// A word in the name of a slot that no process has is a stray one. A process that has taken an
// offered slot by itself is not known yet.
bool ProcessLook::nobody_has(std::uint16_t slot) const {
  const auto is_it = [slot](const std::atomic<std::uint32_t>& offer) {
    return offer.load() == slot;
  };
  return !memory_.slot(slot).offer.has_taker() &&
         std::ranges::none_of(memory_.service_board().offers, is_it);
}

bool ProcessLook::is_gone(Owner owner) const {
  if (owner.slot() == ClientSlot::kOfService || owner.slot() >= memory_.slot_count()) return false;
  const pid_t pid = memory_.slot(owner.slot()).pid.load();
  if (pid <= 0) return nobody_has(owner.slot());
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process) return errno == ESRCH;
  pollfd entry{process.get(), POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

}  // namespace cairn::node
