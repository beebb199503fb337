// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/process_watch.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "service/process/process_image.h"

namespace cairn::node {
namespace {

bool is_readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) > 0;
}

UniqueFd open_process(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// Also of a zombie.
bool has_ended(pid_t pid) {
  const UniqueFd pidfd = open_process(pid);
  if (!pidfd) return errno == ESRCH || (::kill(pid, 0) != 0 && errno == ESRCH);
  return is_readable(pidfd.get());
}

// The process that has made the connection, which the kernel can tell from one that has got its
// number since (Linux 6.5). -ESRCH when it has ended.
UniqueFd process_behind(int socket, pid_t pid) {
  constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, newer than Debian 12's headers
  int pidfd = -1;
  socklen_t length = sizeof pidfd;
  if (::getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &length) == 0) return UniqueFd(pidfd);
  const bool knows_question = errno != ENOPROTOOPT && errno != EINVAL;
  if (knows_question) return UniqueFd(-errno);
  UniqueFd opened = open_process(pid);
  return opened ? std::move(opened) : UniqueFd(-errno);
}

// A dying process closes its sockets a moment before its pidfd tells.
constexpr std::int64_t kOrphanCheckNanos = 20'000'000;

}  // namespace

void ProcessWatch::depart(Process& process) {
  CAIRN_CHECK(process.owner);
  process.departed.push_back(clients_.declare_dead(process.owner.slot(), Departure::kExeced));
  process.owner = Owner();
  events_.on_departure(process.departed.back(), AttachEvents::Departure::kExeced);
}

void ProcessWatch::image_replaced(pid_t pid) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  // A process that had the number before, and whose end is to be noticed still.
  if (is_over(pid, known->second)) return ended(pid);
  // Nobody of the old image is left to touch the arena.
  if (known->second.owner) depart(known->second);
}

bool ProcessWatch::attach(pid_t pid, Owner owner) {
  CAIRN_CHECK(owner);
  Process* process = watch(pid);
  if (process == nullptr) return false;
  process->owner = owner;
  return true;
}

void ProcessWatch::attach_claimed(pid_t pid, Owner owner, int socket) {
  CAIRN_CHECK(owner);
  const auto known = processes_.find(pid);
  Process* process = known == processes_.end() ? nullptr : &known->second;
  bool is_gone = false;
  if (process == nullptr) {
    UniqueFd pidfd = process_behind(socket, pid);
    is_gone = pidfd.get() == -ESRCH;
    process = watch(pid, std::move(pidfd));
  }
  if (process == nullptr) {
    process = &processes_[pid];
    process->is_gone = is_gone;
    unwatched_.insert(pid);
    // After its last messages, which are read before the next look.
    unwatched_at_ns_ = 0;
  }
  CAIRN_CHECK(!process->owner);
  process->owner = owner;
}

void ProcessWatch::adopt_attached(pid_t pid, Owner owner) {
  CAIRN_CHECK(owner);
  Process* process = watch(pid);
  if (process == nullptr) {
    process = &processes_[pid];
    unwatched_.insert(pid);
    unwatched_at_ns_ = 0;
  }
  process->owner = owner;
}

// A new image that is alive may still take over what it wants.
void ProcessWatch::adopt_departed(const ClientTable::Departed& departed) {
  events_.on_departure(departed.owner, departed.how);
  if (departed.how == Departure::kDied) return;
  const auto found = processes_.find(departed.pid);
  if (departed.is_inherited || found == processes_.end() || is_over(departed.pid, found->second))
    return events_.on_inherited(departed.owner);
  found->second.departed.push_back(departed.owner);
}

bool ProcessWatch::decline(pid_t pid, Owner owner) {
  const auto found = processes_.find(pid);
  if (found == processes_.end() || found->second.owner != owner) return false;
  found->second.owner = Owner();
  events_.on_departure(clients_.declare_dead(owner.slot(), Departure::kDied), Departure::kDied);
  return true;
}

void ProcessWatch::inherited(pid_t pid, bool has_ledger) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  // An image that is not served has no slot of its own: what is there is the old one's.
  if (has_ledger && found->second.owner) depart(found->second);
  for (const Owner old : found->second.departed) {
    clients_.note_inherited(old);
    events_.on_inherited(old);
  }
  found->second.departed.clear();
  if (!has_ledger) clients_.end_foreign(pid);
}

void ProcessWatch::disconnected(pid_t pid, Owner owner) {
  orphans_.push_back(Orphan{pid, owner, monotonic_ns() + kOrphanCheckNanos});
}

bool ProcessWatch::is_over(pid_t pid, const Process& process) {
  if (process.is_gone) return true;
  return process.pidfd ? is_readable(process.pidfd.get()) : has_ended(pid);
}

ProcessWatch::Process* ProcessWatch::watch(pid_t pid) {
  if (const auto found = processes_.find(pid); found != processes_.end()) return &found->second;
  return watch(pid, open_process(pid));
}

ProcessWatch::Process* ProcessWatch::watch(pid_t pid, UniqueFd pidfd) {
  CAIRN_CHECK(!processes_.contains(pid));
  if (!pidfd || !watch_end_(pidfd.get(), pid)) return nullptr;
  Process process;
  process.pidfd =
      KeptFd(std::move(pidfd), labels_, {KeptKind::kProcess, static_cast<std::uint64_t>(pid), 0});
  return &processes_.emplace(pid, std::move(process)).first->second;
}

bool ProcessWatch::notice_end_of(pid_t pid, std::optional<FileRoom> room) {
  if (processes_.contains(pid)) return true;
  if (has_ended(pid)) return false;
  Process* process = room ? watch(pid) : nullptr;
  if (process != nullptr) {
    process->room = std::move(*room);
  } else {
    unwatched_.insert(pid);
  }
  return true;
}

void ProcessWatch::check_unwatched() {
  const std::int64_t now = monotonic_ns();
  if (now < unwatched_at_ns_) return;
  unwatched_at_ns_ = now + kLookMs * std::int64_t{1'000'000};
  std::vector<pid_t> dead;
  std::copy_if(unwatched_.begin(), unwatched_.end(), std::back_inserter(dead), [this](pid_t pid) {
    const auto found = processes_.find(pid);
    return found == processes_.end() ? has_ended(pid) : is_over(pid, found->second);
  });
  for (const pid_t pid : dead) ended(pid);
}

void ProcessWatch::ended(pid_t pid) {
  const auto found = processes_.find(pid);
  // The end of a process that had the number before this one has been dealt with already.
  if (found != processes_.end() && !is_over(pid, found->second)) return;
  unwatched_.erase(pid);
  if (found != processes_.end()) {
    const Process process = std::move(found->second);
    processes_.erase(found);
    std::erase_if(orphans_, [pid](const Orphan& orphan) { return orphan.pid == pid; });
    if (process.owner) {
      events_.on_departure(clients_.declare_dead(process.owner.slot(), Departure::kDied),
                           Departure::kDied);
    }
    for (const Owner old : process.departed) {
      clients_.note_inherited(old);
      events_.on_inherited(old);
    }
  }
  clients_.end_foreign(pid);
  if (unserved_.holder_ended(pid)) events_.on_ledger_over();
}

void ProcessWatch::check_orphans() {
  const std::int64_t now = monotonic_ns();
  std::vector<Orphan> due;
  std::erase_if(orphans_, [&](const Orphan& orphan) {
    if (orphan.check_at_ns > now) return false;
    due.push_back(orphan);
    return true;
  });
  for (const Orphan& orphan : due) {
    const auto found = processes_.find(orphan.pid);
    if (found == processes_.end() || found->second.owner != orphan.owner) continue;
    // Still mapped: the program closed our socket but goes on. Its death will be seen by the pidfd.
    // So it is with one of which the kernel says nothing, unless it has told that it executes what
    // cannot be intercepted.
    const NodeMapping mapping = node_mapping_of(orphan.pid);
    if (mapping == NodeMapping::kMapped) continue;
    if (mapping == NodeMapping::kUnknown && !clients_.is_foreign(orphan.pid)) continue;
    depart(found->second);
  }
}

}  // namespace cairn::node
