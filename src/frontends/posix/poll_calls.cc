// SPDX-License-Identifier: Apache-2.0
// poll(), select() and epoll_ctl(): a regular file is always ready, but the kernel does not say so
// of a placeholder.
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>

#include <algorithm>

#include "base/check.h"
#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

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

// Whether one of our descriptors is among the entries. The kernel refuses entries that cannot be
// read.
bool has_ours(const pollfd* entries, nfds_t count) {
  constexpr nfds_t kAtOnce = 32;
  constexpr nfds_t kCountMax = 1U << 30;  // more than there can be descriptors
  if (!DescriptorTable::any() || count > kCountMax) return false;
  pollfd some[kAtOnce];
  for (nfds_t done = 0; done < count; done += kAtOnce) {
    const nfds_t more = std::min(count - done, kAtOnce);
    if (user_copy(some, entries + done, more * sizeof(pollfd)) != 0) return false;
    for (nfds_t index = 0; index < more; ++index) {
      if (DescriptorTable::find(some[index].fd) != nullptr) return true;
    }
  }
  return false;
}

// The application's entries as the kernel is to see them: without our descriptors, which are
// negative numbers and skipped. As in the kernel nothing but the events that came is written back.
class Entries {
 public:
  Entries(pollfd* given, nfds_t count) : given_(given), count_(count) {
    if (count > kFew) {
      void* memory =
          sys::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      entries_ = sys::is_error(memory) ? nullptr : static_cast<pollfd*>(memory);
    }
  }
  ~Entries() {
    if (entries_ != few_ && entries_ != nullptr) sys::munmap(entries_, bytes());
  }
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;

  pollfd* get() const { return entries_; }
  // Returns how many of ours are ready, or -errno.
  int take() {
    constexpr short kReady = POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM;
    if (entries_ == nullptr) return -ENOMEM;
    CAIRN_DCHECK(entries_ != few_ || count_ <= kFew);
    if (user_copy(entries_, given_, bytes()) != 0) return -EFAULT;
    int ready = 0;
    for (nfds_t index = 0; index < count_; ++index) {
      pollfd& entry = entries_[index];
      if (DescriptorTable::find(entry.fd) == nullptr) continue;
      entry.fd = kOurs;
      entry.events &= kReady;
      if (entry.events != 0) ++ready;
    }
    return ready;
  }
  // 0 or -errno.
  int give_back() const {
    CAIRN_DCHECK(entries_ != nullptr);  // take() has filled it
    for (nfds_t index = 0; index < count_; ++index) {
      const pollfd& entry = entries_[index];
      const short came = entry.fd == kOurs ? entry.events : entry.revents;
      if (!put_user(&given_[index].revents, came)) return -EFAULT;
    }
    return 0;
  }

 private:
  static constexpr nfds_t kFew = 64;
  static constexpr int kOurs = INT_MIN;  // what no program hides a descriptor behind

  std::size_t bytes() const { return count_ * sizeof(pollfd); }

  pollfd* given_;
  nfds_t count_;
  pollfd few_[kFew];
  pollfd* entries_ = few_;
};

// Lets `call(entries, timeout_is_zero)` ask the kernel about other files, and answers for ours.
template <typename Call>
int poll_with_ours(pollfd* given, nfds_t count, Call&& call) {
  Entries entries(given, count);
  const int ready = entries.take();
  if (ready < 0) return with_errno(ready);
  const int others = call(entries.get(), ready > 0);
  if (others < 0) return others;
  const int error = entries.give_back();
  return error < 0 ? with_errno(error) : others + ready;
}

constexpr timespec kNoTime{0, 0};

// One of the three sets of select(), with our descriptors taken out while the kernel looks at it.
class OurPart {
 public:
  OurPart(int count, fd_set* given) : count_(std::min(count, FD_SETSIZE)), given_(given) {
    FD_ZERO(&ours_);
    if (given == nullptr || count_ <= 0 || user_copy(&before_, given, bytes()) != 0) return;
    for (int fd = 0; fd < count_; ++fd) {
      if (!FD_ISSET(fd, &before_) || DescriptorTable::find(fd) == nullptr) continue;
      FD_SET(fd, &ours_);
      ++taken_;
    }
  }

  int count() const { return taken_; }
  // False when the set cannot be written.
  bool hide() const {
    if (taken_ == 0) return true;
    fd_set others = before_;
    for (int fd = 0; fd < count_; ++fd) {
      if (FD_ISSET(fd, &ours_)) FD_CLR(fd, &others);
    }
    return user_copy(given_, &others, bytes()) == 0;
  }
  // The set as it was.
  void restore() const {
    if (taken_ != 0) user_copy(given_, &before_, bytes());
  }
  // Ours are ready.
  bool add() const {
    fd_set now;
    if (taken_ == 0) return true;
    if (user_copy(&now, given_, bytes()) != 0) return false;
    for (int fd = 0; fd < count_; ++fd) {
      if (FD_ISSET(fd, &ours_)) FD_SET(fd, &now);
    }
    return user_copy(given_, &now, bytes()) == 0;
  }

 private:
  // The kernel looks at whole words.
  std::size_t bytes() const {
    constexpr std::size_t kWordBits = 8 * sizeof(long);
    static_assert(FD_SETSIZE % kWordBits == 0);
    CAIRN_DCHECK(count_ > 0 && count_ <= FD_SETSIZE);
    return (static_cast<std::size_t>(count_) + kWordBits - 1) / kWordBits * sizeof(long);
  }

  int count_;
  fd_set* given_;
  fd_set before_{};
  fd_set ours_;
  int taken_ = 0;
};

template <typename Call>
int select_with_ours(int count, fd_set* reads, fd_set* writes, fd_set* exceptions, Call&& call) {
  const OurPart our_reads(count, reads);
  const OurPart our_writes(count, writes);
  const OurPart our_exceptions(count, exceptions);
  const int ready = our_reads.count() + our_writes.count();
  if (ready + our_exceptions.count() == 0) return call(false);
  if (!our_reads.hide() || !our_writes.hide() || !our_exceptions.hide()) return with_errno(-EFAULT);
  const int others = call(ready > 0);
  if (others < 0) {
    our_reads.restore();
    our_writes.restore();
    our_exceptions.restore();
    return others;
  }
  if (!our_reads.add() || !our_writes.add()) return with_errno(-EFAULT);
  return others + ready;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;

CAIRN_HOOK(int, poll, (pollfd * entries, nfds_t count, int timeout)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::poll(entries, count, timeout);
  return cairn::poll_with_ours(entries, count, [&](pollfd* asked, bool at_once) {
    return cairn::real::poll(asked, count, at_once ? 0 : timeout);
  });
}

CAIRN_HOOK(int, __poll_chk, (pollfd * entries, nfds_t count, int timeout, size_t size)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::poll_chk(entries, count, timeout, size);
  return cairn::poll_with_ours(entries, count, [&](pollfd* asked, bool at_once) {
    return cairn::real::poll_chk(asked, count, at_once ? 0 : timeout, size);
  });
}

CAIRN_HOOK(int, ppoll,
           (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask)) {
  if (!cairn::has_ours(entries, count)) return cairn::real::ppoll(entries, count, timeout, mask);
  return cairn::poll_with_ours(entries, count, [&](pollfd* asked, bool at_once) {
    return cairn::real::ppoll(asked, count, at_once ? &cairn::kNoTime : timeout, mask);
  });
}

CAIRN_HOOK(int, __ppoll_chk,
           (pollfd * entries, nfds_t count, const timespec* timeout, const sigset_t* mask,
            size_t size)) {
  if (!cairn::has_ours(entries, count))
    return cairn::real::ppoll_chk(entries, count, timeout, mask, size);
  return cairn::poll_with_ours(entries, count, [&](pollfd* asked, bool at_once) {
    return cairn::real::ppoll_chk(asked, count, at_once ? &cairn::kNoTime : timeout, mask, size);
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
  if (DescriptorTable::find(fd) == nullptr)
    return cairn::real::epoll_ctl(poller, operation, fd, event);
  // The event is looked at before anything else.
  epoll_event wanted;
  if (operation != EPOLL_CTL_DEL && !cairn::get_user(&wanted, event))
    return cairn::with_errno(-EFAULT);
  return cairn::with_errno(-EPERM);
}
