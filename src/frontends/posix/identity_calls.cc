// SPDX-License-Identifier: Apache-2.0
// setuid(), chroot() and their like: after them a process may not reach its node any more, so one
// that has not attached yet does it before. Unattached, it would not see what others have buffered.
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>

#include "frontends/client/session.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/clone_calls.h"
#include "frontends/posix/exec_plan.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(uid_t)> setuid{"setuid"};
constinit RealCall<int(uid_t)> seteuid{"seteuid"};
constinit RealCall<int(uid_t, uid_t)> setreuid{"setreuid"};
constinit RealCall<int(uid_t, uid_t, uid_t)> setresuid{"setresuid"};
constinit RealCall<int(const char*)> chroot{"chroot"};
constinit RealCall<int(const char*, const char*)> pivot_root{"pivot_root"};
constinit RealCall<int(int)> unshare{"unshare"};
constinit RealCall<int(int, int)> setns{"setns"};
constinit RealCall<int(int, ...)> prctl{"prctl"};
}  // namespace
}  // namespace real

namespace {

constexpr auto kUnchanged = static_cast<uid_t>(-1);

constinit std::atomic<bool> is_announced{false};

void attach_while_it_is_possible() {
  const ErrnoKeeper keeper;
  Session& session = Session::instance();
  if (session.is_configured()) session.attach();
}

// Programs that this process starts as another user work on the backing store: they find all
// earlier writes there, and from here on each close stores its file at once.
void prepare_for_user(uid_t next) {
  const ErrnoKeeper keeper;
  Session& session = Session::instance();
  if (!session.is_configured() || !session.attach()) return;
  if (next == kUnchanged || next == session.user() || is_announced.exchange(true)) return;
  store_everything();
  session.notify_foreign(program_invocation_short_name, text_of(ForeignReason::kOtherUser));
}

// What this process starts below the new root does not find the library there, and the node's
// socket is out of reach for storing anything once the root has changed.
void prepare_for_root() {
  const ErrnoKeeper keeper;
  Session& session = Session::instance();
  if (!session.is_configured()) return;
  store_everything();
  session.notify_foreign(program_invocation_short_name, text_of(ForeignReason::kOtherRoot));
}

}  // namespace
}  // namespace cairn

CAIRN_HOOK(int, setuid, (uid_t user)) {
  cairn::prepare_for_user(user);
  return cairn::real::setuid(user);
}

CAIRN_HOOK(int, seteuid, (uid_t user)) {
  cairn::prepare_for_user(user);
  return cairn::real::seteuid(user);
}

CAIRN_HOOK(int, setreuid, (uid_t real_user, uid_t effective)) {
  cairn::prepare_for_user(effective);
  return cairn::real::setreuid(real_user, effective);
}

CAIRN_HOOK(int, setresuid, (uid_t real_user, uid_t effective, uid_t saved)) {
  cairn::prepare_for_user(effective);
  return cairn::real::setresuid(real_user, effective, saved);
}

CAIRN_HOOK(int, chroot, (const char* path)) {
  const bool stays = path != nullptr && path[0] == '/' && path[1] == '\0';
  if (!stays) cairn::prepare_for_root();
  return cairn::real::chroot(path);
}

CAIRN_HOOK(int, pivot_root, (const char* root, const char* place_of_old)) {
  cairn::prepare_for_root();
  return cairn::real::pivot_root(root, place_of_old);
}

CAIRN_HOOK(int, unshare, (int flags)) {
  cairn::attach_while_it_is_possible();
  cairn::before_unshare(static_cast<unsigned long>(flags));
  return cairn::real::unshare(flags);
}

CAIRN_HOOK(int, setns, (int fd, int kind)) {
  cairn::attach_while_it_is_possible();
  // 0: of whatever kind the descriptor is.
  if (kind == 0 || (kind & CLONE_NEWNS) != 0) cairn::prepare_for_root();
  return cairn::real::setns(fd, kind);
}

CAIRN_HOOK(int, prctl, (int option, ...)) {
  va_list arguments;
  va_start(arguments, option);
  unsigned long words[4];
  for (unsigned long& word : words) word = va_arg(arguments, unsigned long);
  va_end(arguments);
  // A filter of the program's own may forbid sockets.
  if (option == PR_SET_SECCOMP) cairn::attach_while_it_is_possible();
  return cairn::real::prctl(option, words[0], words[1], words[2], words[3]);
}
