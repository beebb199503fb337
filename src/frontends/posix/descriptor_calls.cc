// SPDX-License-Identifier: Apache-2.0
// close(), dup() and their relatives. The kernel does the work on the placeholder; the table
// follows.
#include "frontends/posix/descriptor_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "base/signal_gate.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/number_room.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/files/file_closing.h"
#include "frontends/files/file_duplicates.h"
#include "frontends/libc/cancellation.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/clone_calls.h"
#include "frontends/processes/vfork_shadow.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int)> close{"close"};
constinit RealCall<int(int)> dup{"dup"};
constinit RealCall<int(int, int)> dup2{"dup2"};
constinit RealCall<int(int, int, int)> dup3{"dup3"};
}  // namespace
}  // namespace real

namespace {

// A vfork child may have put something at a number that is private in its parent.
bool is_of_child(int fd) { return is_vfork_child() && VforkShadow::has_note(fd); }

}  // namespace

int close_descriptor(int fd) {
  if (DescriptorTable::find(fd) != nullptr) {
    if (!is_vfork_child()) return close_tracked(fd);
    VforkShadow::note(fd, nullptr);
    return sys::close(fd);
  }
  if (__builtin_expect(PrivateDescriptors::is_private(fd), 0) && !is_of_child(fd)) return -EBADF;
  return real::close(fd) < 0 ? -errno : 0;
}

namespace {

// Makes a duplicate of `fd` by the kernel's `make`, and notes it. The record is counted on before,
// so that nobody ends it meanwhile.
template <typename Make>
int duplicate_held(int fd, bool close_on_exec, Make&& make) {
  const SignalGateGuard gate;
  OpenFile* const file = hold_file(fd);
  const int made = make();
  if (file == nullptr) {
    if (made >= 0) release_displaced(DescriptorTable::take(made), made);
    return made;
  }
  if (made >= 0) note_duplicate(*file, made, close_on_exec);
  release_held(*file);
  return made;
}

}  // namespace

int duplicate_above(int fd, int floor, bool close_on_exec) {
  const auto make = [=] {
    return sys::fcntl(fd, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, floor);
  };
  if (is_vfork_child()) {
    const int made = make();
    if (made >= 0) VforkShadow::note(made, VforkShadow::find(fd, DescriptorTable::find(fd)));
    return made;
  }
  for (;;) {
    const bool was_ours = DescriptorTable::find(fd) != nullptr;
    const int made = duplicate_held(fd, close_on_exec, make);
    // Opened by another thread as a buffered file meanwhile: what was made is of nothing.
    const bool is_of_nothing = made >= 0 && !was_ours && DescriptorTable::find(fd) != nullptr &&
                               DescriptorTable::find(made) == nullptr;
    if (__builtin_expect(!is_of_nothing, 1)) return made;
    sys::close(made);
  }
}

bool may_be_ours(int fd) {
  if (DescriptorTable::find(fd) != nullptr) return true;
  // A vfork child's descriptors are not in the table, which is its parent's.
  return DescriptorTable::any() && is_vfork_child();
}

namespace {

// dup3() by the kernel, after which the table still has what stood at `to`: a call that fails
// leaves that alone.
int put_at(int from, int to, int flags) {
  OpenFile* there = DescriptorTable::find(to);
  if (there == nullptr || there->private_fd() != to) return sys::dup3(from, to, flags);
  const bool has_left = leave_number(*there, to);
  if (!has_left) (void)forget_tracked(to);
  const int made = sys::dup3(from, to, flags);
  if (made < 0 && has_left) return_to_number(*there, to);
  return made;
}

}  // namespace

int duplicate_onto(int from, int to, bool close_on_exec) {
  const int flags = close_on_exec ? O_CLOEXEC : 0;
  if (is_vfork_child()) {
    OpenFile* const file = VforkShadow::find(from, DescriptorTable::find(from));
    const int made = sys::dup3(from, to, flags);
    if (made >= 0) VforkShadow::note(made, file);
    return made;
  }
  // Room is made at `to` only if the kernel will put something there.
  if (sys::fcntl(from, F_GETFD) < 0 || to < 0) return -EBADF;
  if (PrivateDescriptors::is_private(to) && !make_room_at(to)) return -EBUSY;
  return duplicate_held(from, close_on_exec, [=] { return put_at(from, to, flags); });
}

namespace {

// The rest of a range that is not ours goes to the kernel in one call; private descriptors are left
// out of it.
int close_untracked(unsigned first, unsigned last, unsigned flags) {
  return static_cast<int>(sys::call(SYS_close_range, first, last, flags));
}

}  // namespace

int set_descriptor_flags(int fd, OpenFile& file, long flags) {
  const int result = sys::fcntl(fd, F_SETFD, flags);
  if (result >= 0 && !is_vfork_child()) update_close_on_exec(file);
  return result;
}

int close_descriptors(unsigned first, unsigned last, unsigned flags) {
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  constexpr unsigned kUnshare = 2;      // CLOSE_RANGE_UNSHARE
  if (first > last || (flags & ~(kCloseOnExec | kUnshare)) != 0) return -EINVAL;
  const bool is_child = is_vfork_child();
  const bool sets_flag = (flags & kCloseOnExec) != 0;
  if ((flags & kUnshare) != 0) before_unshare(CLONE_FILES);
  unsigned begin = first;
  int result = 0;
  const auto top = static_cast<unsigned>(
      std::max(DescriptorTable::highest(), PrivateDescriptors::highest()) + 1);
  for (unsigned fd = first; fd <= last && fd < top; ++fd) {
    const bool is_private =
        PrivateDescriptors::is_private(static_cast<int>(fd)) && !is_of_child(static_cast<int>(fd));
    const bool is_tracked = DescriptorTable::find(static_cast<int>(fd)) != nullptr;
    if (!is_private && !(is_tracked && !is_child && !sets_flag)) continue;
    if (begin < fd) result = close_untracked(begin, fd - 1, flags);
    if (result < 0) return result;
    if (!is_private) close_tracked(static_cast<int>(fd));
    begin = fd + 1;
  }
  if (begin <= last) result = close_untracked(begin, last, flags);
  if (result == 0 && sets_flag && !is_child) {
    DescriptorTable::for_each([](int, OpenFile& file) { update_close_on_exec(file); },
                              static_cast<int>(first),
                              last > INT_MAX ? INT_MAX : static_cast<int>(last));
  }
  return result;
}

}  // namespace cairn

using cairn::DescriptorTable;
using cairn::PrivateDescriptors;
using cairn::with_errno;

CAIRN_HOOK(int, close, (int fd)) {
  if (DescriptorTable::find(fd) == nullptr && !PrivateDescriptors::is_private(fd)) {
    return cairn::real::close(fd);
  }
  cairn::cancellation_point();
  return with_errno(cairn::close_descriptor(fd));
}
CAIRN_TWIN(close, __close);

CAIRN_HOOK(int, dup, (int fd)) {
  if (!cairn::may_be_ours(fd)) return cairn::real::dup(fd);
  return with_errno(cairn::duplicate_above(fd, 0, false));
}

CAIRN_HOOK(int, dup2, (int from, int to)) {
  const bool is_plain = !cairn::may_be_ours(from) && DescriptorTable::find(to) == nullptr &&
                        !PrivateDescriptors::is_private(to);
  if (is_plain || from == to) return cairn::real::dup2(from, to);
  return with_errno(cairn::duplicate_onto(from, to, false));
}
CAIRN_TWIN(dup2, __dup2);

CAIRN_HOOK(int, dup3, (int from, int to, int flags)) {
  const bool is_plain = !cairn::may_be_ours(from) && DescriptorTable::find(to) == nullptr &&
                        !PrivateDescriptors::is_private(to);
  if (is_plain || from == to || (flags & ~O_CLOEXEC) != 0)
    return cairn::real::dup3(from, to, flags);
  return with_errno(cairn::duplicate_onto(from, to, (flags & O_CLOEXEC) != 0));
}

CAIRN_HOOK(int, close_range, (unsigned first, unsigned last, int flags)) {
  return with_errno(cairn::close_descriptors(first, last, static_cast<unsigned>(flags)));
}

CAIRN_HOOK(void, closefrom, (int lowest)) {
  const cairn::ErrnoKeeper keeper;
  cairn::close_descriptors(lowest < 0 ? 0 : static_cast<unsigned>(lowest), UINT_MAX, 0);
}
