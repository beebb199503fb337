// SPDX-License-Identifier: Apache-2.0
// poll(), select() and epoll_ctl(): a regular file is always ready, but the kernel does not say so
// of a placeholder.
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>

#include "base/system_call.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/hook.h"
#include "frontends/common/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(pollfd*, nfds_t, int)> poll{"poll"};
constinit RealCall<int(pollfd*, nfds_t, const timespec*, const sigset_t*)> ppoll{"ppoll"};
constinit RealCall<int(pollfd*, nfds_t, int, size_t)> poll_chk{"__poll_chk"};
constinit RealCall<int(pollfd*, nfds_t, const timespec*, const sigset_t*, size_t)> ppoll_chk{
    "__ppoll_chk"};
constinit RealCall<int(int, fd_set*, fd_set*, fd_set*, timeval*)> select{"select"};
constinit RealCall<int(int, fd_set*, fd_set*, fd_set*, const timespec*, const sigset_t*)> pselect{
    "pselect"};
constinit RealCall<int(int, int, int, epoll_event*)> epoll_ctl{"epoll_ctl"};
}  // namespace
}  // namespace real

namespace {

bool has_ours(const pollfd* entries, nfds_t count) {
  if (entries == nullptr || !DescriptorTable::any()) return false;
  for (nfds_t index = 0; index < count; ++index) {
    if (DescriptorTable::find(entries[index].fd) != nullptr) return true;
  }
  return false;
}

// Hides our descriptors from the kernel (negative numbers are skipped), lets
// `call(timeout_is_zero)` ask it about the rest, and answers for ours.
template <typename Call>
int poll_with_ours(pollfd* entries, nfds_t count, Call&& call) {
  constexpr short kReady = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
  int ready = 0;
  for (nfds_t index = 0; index < count; ++index) {
    if (DescriptorTable::find(entries[index].fd) == nullptr) continue;
    entries[index].fd = ~entries[index].fd;
    entries[index].revents = 0;
    if ((entries[index].events & kReady) != 0) ++ready;
  }
  const int others = call(ready > 0);
  const int error = errno;
  for (nfds_t index = 0; index < count; ++index) {
    const int fd = ~entries[index].fd;
    if (fd < 0 || DescriptorTable::find(fd) == nullptr) continue;
    entries[index].fd = fd;
    entries[index].revents = others < 0 ? 0 : static_cast<short>(entries[index].events & kReady);
  }
  errno = error;
  return others < 0 ? others : others + ready;
}

constexpr timespec kNoTime{0, 0};

// Takes our descriptors out of `set` and puts them into `ours`. Returns how many.
int take_ours(int count, fd_set* set, fd_set* ours) {
  FD_ZERO(ours);
  if (set == nullptr) return 0;
  int taken = 0;
  for (int fd = 0; fd < std::min(count, FD_SETSIZE); ++fd) {
    if (!FD_ISSET(fd, set) || DescriptorTable::find(fd) == nullptr) continue;
    FD_CLR(fd, set);
    FD_SET(fd, ours);
    ++taken;
  }
  return taken;
}

void give_back(int count, const fd_set& ours, fd_set* set) {
  for (int fd = 0; set != nullptr && fd < std::min(count, FD_SETSIZE); ++fd) {
    if (FD_ISSET(fd, &ours)) FD_SET(fd, set);
  }
}

template <typename Call>
int select_with_ours(int count, fd_set* reads, fd_set* writes, fd_set* exceptions, Call&& call) {
  fd_set our_reads;
  fd_set our_writes;
  fd_set our_exceptions;
  const int ready = take_ours(count, reads, &our_reads) + take_ours(count, writes, &our_writes);
  take_ours(count, exceptions, &our_exceptions);
  const int others = call(ready > 0);
  if (others < 0) return others;
  give_back(count, our_reads, reads);
  give_back(count, our_writes, writes);
  return others + ready;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;

CAIRN_HOOK(int, poll, (pollfd * entries, nfds_t count, int timeout)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::poll(entries, count, timeout);
  return cairn::poll_with_ours(entries, count, [&](bool at_once) {
    return cairn::real::poll(entries, count, at_once ? 0 : timeout);
  });
}

CAIRN_HOOK(int, __poll_chk, (pollfd * entries, nfds_t count, int timeout, size_t size)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::poll_chk(entries, count, timeout, size);
  return cairn::poll_with_ours(entries, count, [&](bool at_once) {
    return cairn::real::poll_chk(entries, count, at_once ? 0 : timeout, size);
  });
}

CAIRN_HOOK(int, ppoll,
           (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::ppoll(entries, count, timeout, mask);
  return cairn::poll_with_ours(entries, count, [&](bool at_once) {
    return cairn::real::ppoll(entries, count, at_once ? &cairn::kNoTime : timeout, mask);
  });
}

CAIRN_HOOK(int, __ppoll_chk,
           (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
            size_t size)) {
  if (!cairn::has_ours(entries, count))
    return cairn::real::ppoll_chk(entries, count, timeout, mask, size);
  return cairn::poll_with_ours(entries, count, [&](bool at_once) {
    return cairn::real::ppoll_chk(entries, count, at_once ? &cairn::kNoTime : timeout, mask, size);
  });
}

CAIRN_HOOK(int, select,
           (int count, fd_set* reads, fd_set* writes, fd_set* exceptions, timeval* timeout)) {
  if (!DescriptorTable::any())
    return cairn::real::select(count, reads, writes, exceptions, timeout);
  return cairn::select_with_ours(count, reads, writes, exceptions, [&](bool at_once) {
    timeval no_time{0, 0};
    return cairn::real::select(count, reads, writes, exceptions, at_once ? &no_time : timeout);
  });
}

CAIRN_HOOK(int, pselect,
           (int count, fd_set* reads, fd_set* writes, fd_set* exceptions, const timespec* timeout,
            const sigset_t* mask)) {
  if (!DescriptorTable::any())
    return cairn::real::pselect(count, reads, writes, exceptions, timeout, mask);
  return cairn::select_with_ours(count, reads, writes, exceptions, [&](bool at_once) {
    return cairn::real::pselect(count, reads, writes, exceptions,
                                at_once ? &cairn::kNoTime : timeout, mask);
  });
}

CAIRN_HOOK(int, epoll_ctl, (int poller, int operation, int fd, epoll_event* event)) {
  if (DescriptorTable::find(fd) != nullptr) return cairn::with_errno(-EPERM);
  return cairn::real::epoll_ctl(poller, operation, fd, event);
}
