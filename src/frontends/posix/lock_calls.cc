// SPDX-License-Identifier: Apache-2.0
#include "frontends/posix/lock_calls.h"

#include <sys/file.h>
#include <unistd.h>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/files/file_io.h"
#include "frontends/files/file_shape.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/late_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, int, ...)> fcntl{"fcntl64"};
constinit RealCall<int(int, int)> flock{"flock"};
constinit RealCall<int(int, int, off_t)> lockf{"lockf64"};
}  // namespace
}  // namespace real

int lock_range(OpenFile& file, int command, struct flock* range) {
  if (range == nullptr) return -EFAULT;
  // The kernel does not know our offset and size, so the range is made absolute here.
  struct flock absolute = *range;
  off_t base = 0;
  if (range->l_whence == SEEK_CUR) base = file_seek(file, 0, SEEK_CUR);
  if (range->l_whence == SEEK_END) base = file_size(file);
  if (base < 0) return static_cast<int>(base);
  if (base != 0 && __builtin_add_overflow(base, absolute.l_start, &absolute.l_start))
    return -EOVERFLOW;
  if (range->l_whence == SEEK_CUR || range->l_whence == SEEK_END) absolute.l_whence = SEEK_SET;
  const bool is_posix = command == F_SETLK || command == F_SETLKW;
  const bool is_own = command == F_OFD_SETLK || command == F_OFD_SETLKW;
  if (is_posix && absolute.l_type != F_UNLCK) {
    // While the file is locked it cannot be opened for reading without a trace.
    if (!file.may_read && !PosixLocks::is_locked(file.object)) (void)file.backing->readable_fd();
    PosixLocks::note(file.object);
  }
  if (is_own && absolute.l_type != F_UNLCK) file.description->flags.fetch_or(kHasOwnLocks);
  const ErrnoKeeper keeper;
  // Through libc: waiting for a lock is a cancellation point.
  if (real::fcntl(file.shared_fd(), command, &absolute) < 0) return -errno;
  if (command == F_GETLK || command == F_OFD_GETLK) {
    // Nobody is in the way: the kernel says so in the type and leaves the range as it was asked.
    if (absolute.l_type == F_UNLCK) {
      range->l_type = F_UNLCK;
    } else {
      *range = absolute;
    }
  }
  return 0;
}

namespace {

int lock_from_here(OpenFile& file, int command, off_t length) {
  struct flock range{};
  range.l_whence = SEEK_CUR;
  range.l_len = length;
  range.l_type = F_WRLCK;
  switch (command) {
    case F_LOCK:
      return lock_range(file, F_SETLKW, &range);
    case F_TLOCK:
      return lock_range(file, F_SETLK, &range);
    case F_ULOCK:
      range.l_type = F_UNLCK;
      return lock_range(file, F_SETLK, &range);
    case F_TEST: {
      range.l_type = F_RDLCK;
      const int error = lock_range(file, F_GETLK, &range);
      if (error < 0) return error;
      return range.l_type == F_UNLCK || range.l_pid == sys::getpid() ? 0 : -EACCES;
    }
    default:
      return -EINVAL;
  }
}

// The lock belongs to the open description: the private descriptor's, which dup, fork and exec
// share.
int lock_description(OpenFile* file, int fd, int operation) {
  if (file == nullptr) return real::flock(fd, operation);
  if ((operation & LOCK_UN) == 0) file->description->flags.fetch_or(kHasOwnLocks);
  return real::flock(file->shared_fd(), operation);
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::OpenFile;

// One that waits for somebody else's lock keeps no file open: the program's handlers have to run
// meanwhile.
CAIRN_HOOK(int, flock, (int fd, int operation)) {
  const bool may_wait = (operation & (LOCK_UN | LOCK_NB)) == 0;
  if (may_wait) return cairn::lock_description(DescriptorTable::find(fd), fd, operation);
  return cairn::with_open_file(
      fd, [=](OpenFile* file, int real) { return cairn::lock_description(file, real, operation); });
}

CAIRN_HOOK(int, lockf, (int fd, int command, off_t length)) {
  const auto lock = [=](OpenFile* file, int real) {
    if (file == nullptr) return cairn::real::lockf(real, command, length);
    return cairn::with_errno(cairn::lock_from_here(*file, command, length));
  };
  return command == F_LOCK ? lock(DescriptorTable::find(fd), fd) : cairn::with_open_file(fd, lock);
}
CAIRN_TWIN(lockf, lockf64);
