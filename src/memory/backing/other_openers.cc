// SPDX-License-Identifier: Apache-2.0
#include "memory/backing/other_openers.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <time.h>

#include <cstring>

#include "base/system_call.h"

namespace cairn {
namespace {

// The kernel signals the holder of a lease when somebody else opens the file. The last signal is
// the one that programs use least; while it is blocked none is delivered.
constexpr int kSignal = 64;
constexpr std::uint64_t kSignalSet = std::uint64_t{1} << (kSignal - 1);
constexpr std::size_t kSetBytes = sizeof kSignalSet;

// Directs the signals of a lease at this thread, which takes them off its queue itself.
class SignalsHeldBack {
 public:
  explicit SignalsHeldBack(int fd) : fd_(fd) {
    sys::call(SYS_rt_sigprocmask, SIG_BLOCK, sys::word(&kSignalSet), sys::word(&before_),
              kSetBytes);
    const f_owner_ex self{F_OWNER_TID, sys::gettid()};
    is_set_ = sys::fcntl(fd, F_SETOWN_EX, sys::word(&self)) == 0 &&
              sys::fcntl(fd, F_SETSIG, kSignal) == 0;
  }
  ~SignalsHeldBack() {
    sys::fcntl(fd_, F_SETSIG, 0);
    sys::fcntl(fd_, F_SETOWN, 0);
    take_signal();
    sys::call(SYS_rt_sigprocmask, SIG_SETMASK, sys::word(&before_), 0, kSetBytes);
  }
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

  bool is_set() const { return is_set_; }

 private:
  void take_signal() const {
    constexpr timespec kNow{0, 0};
    siginfo_t taken;
    if (sys::call(SYS_rt_sigtimedwait, sys::word(&kSignalSet), sys::word(&taken), sys::word(&kNow),
                  kSetBytes) < 0) {
      return;
    }
    if (taken.si_code > 0 && taken.si_fd == fd_) return;
    // One of the program's own, which it had blocked.
    sys::call(SYS_rt_tgsigqueueinfo, sys::getpid(), sys::gettid(), kSignal, sys::word(&taken));
  }

  int fd_;
  bool is_set_ = false;
  std::uint64_t before_ = 0;
};

}  // namespace

bool may_have_other_openers(int fd) {
  if (sys::fcntl(fd, F_GETLEASE) != F_UNLCK) return true;
  const SignalsHeldBack signals(fd);
  if (!signals.is_set() || sys::fcntl(fd, F_SETLEASE, F_WRLCK) < 0) return true;
  sys::fcntl(fd, F_SETLEASE, F_UNLCK);
  return false;
}

}  // namespace cairn
