// SPDX-License-Identifier: Apache-2.0
// syscall(): programs that number their calls themselves get the same hooks as those that use
// libc's names.
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "client/opening_guard.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/file_io.h"
#include "frontends/common/hook.h"
#include "frontends/common/kernel_aio.h"
#include "frontends/common/open_file.h"
#include "frontends/common/real_calls.h"
#include "frontends/posix/clone_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<long(long, long, long, long, long, long, long)> syscall{"syscall"};
}  // namespace
}  // namespace real

namespace {

struct Arguments {
  long word[6];

  template <typename T>
  T* pointer(int index) const {
    return reinterpret_cast<T*>(word[index]);
  }
  int number(int index) const { return static_cast<int>(word[index]); }
  std::size_t size(int index) const { return static_cast<std::size_t>(word[index]); }
};

// openat2() has no name in libc. The kernel resolves the path under the caller's rules, then the
// file is looked at.
long open_with_rules(const Arguments& arguments) {
  open_how rules;
  if (arguments.size(3) < sizeof(open_how) ||
      !get_user(&rules, arguments.pointer<const open_how>(2))) {
    return sys::call(SYS_openat2, arguments.word[0], arguments.word[1], arguments.word[2],
                     arguments.word[3]);
  }
  open_how changed = rules;
  const bool truncates = (rules.flags & O_TRUNC) != 0 && (rules.flags & O_ACCMODE) != O_RDONLY;
  if (truncates) changed.flags &= ~static_cast<std::uint64_t>(O_TRUNC);
  const auto* path = arguments.pointer<const char>(1);
  const OpeningGuard opening(
      opening_actor(arguments.number(0), path, static_cast<int>(changed.flags)));
  const long fd = sys::call(SYS_openat2, arguments.word[0], arguments.word[1], sys::word(&changed),
                            static_cast<long>(sizeof changed));
  if (fd < 0) return fd;
  const int error = manage_opened(static_cast<int>(fd), static_cast<int>(changed.flags));
  if (error < 0) {
    sys::close(static_cast<int>(fd));
    return error;
  }
  if (!truncates) return fd;
  return truncate_opened(static_cast<int>(fd), DescriptorTable::find(static_cast<int>(fd)));
}

bool is_hooked(long number) {
  switch (number) {
    case SYS_read:
    case SYS_write:
    case SYS_openat:
    case SYS_close:
    case SYS_fstat:
    case SYS_lseek:
    case SYS_mmap:
    case SYS_munmap:
    case SYS_mremap:
    case SYS_ioctl:
    case SYS_pread64:
    case SYS_pwrite64:
    case SYS_readv:
    case SYS_writev:
    case SYS_dup:
    case SYS_dup3:
    case SYS_fcntl:
    case SYS_flock:
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_truncate:
    case SYS_ftruncate:
    case SYS_fchmod:
    case SYS_fchown:
    case SYS_sendfile:
    case SYS_splice:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_preadv:
    case SYS_pwritev:
    case SYS_preadv2:
    case SYS_pwritev2:
    case SYS_fallocate:
    case SYS_copy_file_range:
    case SYS_statx:
    case SYS_newfstatat:
    case SYS_unlinkat:
    case SYS_renameat2:
    case SYS_utimensat:
    case SYS_close_range:
    case SYS_openat2:
    case SYS_sync_file_range:
    case SYS_fgetxattr:
    case SYS_fsetxattr:
    case SYS_flistxattr:
    case SYS_fremovexattr:
    case SYS_epoll_ctl:
    case SYS_execve:
    case SYS_execveat:
    case SYS_io_submit:
    case SYS_io_destroy:
#if defined(__x86_64__)
    case SYS_open:
    case SYS_creat:
    case SYS_stat:
    case SYS_lstat:
    case SYS_dup2:
    case SYS_unlink:
    case SYS_rename:
    case SYS_renameat:
    case SYS_poll:
#endif
      return true;
    default:
      return false;
  }
}

long dispatch_data(long number, const Arguments& a);
long dispatch_name(long number, const Arguments& a);

long dispatch_descriptor(long number, const Arguments& a) {
  switch (number) {
    case SYS_close:
      return ::close(a.number(0));
    case SYS_dup:
      return ::dup(a.number(0));
    case SYS_dup3:
      return ::dup3(a.number(0), a.number(1), a.number(2));
    case SYS_fcntl:
      return ::fcntl(a.number(0), a.number(1), a.word[2]);
    case SYS_ioctl:
      return ::ioctl(a.number(0), static_cast<unsigned long>(a.word[1]), a.word[2]);
    case SYS_flock:
      return ::flock(a.number(0), a.number(1));
    case SYS_fsync:
      return ::fsync(a.number(0));
    case SYS_fdatasync:
      return ::fdatasync(a.number(0));
    case SYS_sync:
      return ::sync(), 0;
    case SYS_syncfs:
      return ::syncfs(a.number(0));
    case SYS_sync_file_range:
      return ::sync_file_range(a.number(0), a.word[1], a.word[2], static_cast<unsigned>(a.word[3]));
    case SYS_ftruncate:
      return ::ftruncate(a.number(0), a.word[1]);
    case SYS_fallocate:
      return ::fallocate(a.number(0), a.number(1), a.word[2], a.word[3]);
    case SYS_fchmod:
      return ::fchmod(a.number(0), static_cast<mode_t>(a.word[1]));
    case SYS_fchown:
      return ::fchown(a.number(0), static_cast<uid_t>(a.word[1]), static_cast<gid_t>(a.word[2]));
    case SYS_fgetxattr:
      return ::fgetxattr(a.number(0), a.pointer<char>(1), a.pointer<void>(2), a.size(3));
    case SYS_fsetxattr:
      return ::fsetxattr(a.number(0), a.pointer<char>(1), a.pointer<void>(2), a.size(3),
                         a.number(4));
    case SYS_flistxattr:
      return ::flistxattr(a.number(0), a.pointer<char>(1), a.size(2));
    case SYS_fremovexattr:
      return ::fremovexattr(a.number(0), a.pointer<char>(1));
    case SYS_close_range:
      return ::close_range(static_cast<unsigned>(a.word[0]), static_cast<unsigned>(a.word[1]),
                           a.number(2));
    case SYS_io_submit:
      return with_errno(
          KernelAio::submit(static_cast<aio_context_t>(a.word[0]), a.word[1], a.pointer<iocb*>(2)));
    case SYS_io_destroy:
      return with_errno(KernelAio::destroy(static_cast<aio_context_t>(a.word[0])));
    case SYS_epoll_ctl:
      return ::epoll_ctl(a.number(0), a.number(1), a.number(2), a.pointer<epoll_event>(3));
#if defined(__x86_64__)
    case SYS_dup2:
      return ::dup2(a.number(0), a.number(1));
    case SYS_poll:
      return ::poll(a.pointer<pollfd>(0), static_cast<nfds_t>(a.word[1]), a.number(2));
#endif
    default:
      return dispatch_data(number, a);
  }
}

long dispatch_data(long number, const Arguments& a) {
  switch (number) {
    case SYS_read:
      return ::read(a.number(0), a.pointer<void>(1), a.size(2));
    case SYS_write:
      return ::write(a.number(0), a.pointer<void>(1), a.size(2));
    case SYS_lseek:
      return ::lseek(a.number(0), a.word[1], a.number(2));
    case SYS_pread64:
      return ::pread(a.number(0), a.pointer<void>(1), a.size(2), a.word[3]);
    case SYS_pwrite64:
      return ::pwrite(a.number(0), a.pointer<void>(1), a.size(2), a.word[3]);
    case SYS_readv:
      return ::readv(a.number(0), a.pointer<iovec>(1), a.number(2));
    case SYS_writev:
      return ::writev(a.number(0), a.pointer<iovec>(1), a.number(2));
    case SYS_preadv:
      return ::preadv(a.number(0), a.pointer<iovec>(1), a.number(2), a.word[3]);
    case SYS_pwritev:
      return ::pwritev(a.number(0), a.pointer<iovec>(1), a.number(2), a.word[3]);
    case SYS_preadv2:
      return ::preadv2(a.number(0), a.pointer<iovec>(1), a.number(2), a.word[3], a.number(5));
    case SYS_pwritev2:
      return ::pwritev2(a.number(0), a.pointer<iovec>(1), a.number(2), a.word[3], a.number(5));
    case SYS_sendfile:
      return ::sendfile(a.number(0), a.number(1), a.pointer<off_t>(2), a.size(3));
    case SYS_splice:
      return ::splice(a.number(0), a.pointer<off_t>(1), a.number(2), a.pointer<off_t>(3), a.size(4),
                      static_cast<unsigned>(a.word[5]));
    case SYS_copy_file_range:
      return ::copy_file_range(a.number(0), a.pointer<off_t>(1), a.number(2), a.pointer<off_t>(3),
                               a.size(4), static_cast<unsigned>(a.word[5]));
    case SYS_mmap:
      return reinterpret_cast<long>(
          ::mmap(a.pointer<void>(0), a.size(1), a.number(2), a.number(3), a.number(4), a.word[5]));
    case SYS_munmap:
      return ::munmap(a.pointer<void>(0), a.size(1));
    case SYS_mremap:
      return reinterpret_cast<long>(
          ::mremap(a.pointer<void>(0), a.size(1), a.size(2), a.number(3), a.pointer<void>(4)));
    default:
      return dispatch_name(number, a);
  }
}

long dispatch_name(long number, const Arguments& a) {
  using Stat = struct ::stat;
  switch (number) {
    case SYS_openat:
      return with_errno(open_managed(a.number(0), a.pointer<char>(1), a.number(2),
                                     static_cast<mode_t>(a.word[3])));
    case SYS_openat2:
      return with_errno(open_with_rules(a));
    case SYS_fstat:
      return ::fstat(a.number(0), a.pointer<Stat>(1));
    case SYS_newfstatat:
      return ::fstatat(a.number(0), a.pointer<char>(1), a.pointer<Stat>(2), a.number(3));
    case SYS_statx:
      return ::statx(a.number(0), a.pointer<char>(1), a.number(2), static_cast<unsigned>(a.word[3]),
                     a.pointer<struct ::statx>(4));
    case SYS_truncate:
      return ::truncate(a.pointer<char>(0), a.word[1]);
    case SYS_execve:
      return ::execve(a.pointer<char>(0), a.pointer<char*>(1), a.pointer<char*>(2));
    case SYS_execveat:
      return ::execveat(a.number(0), a.pointer<char>(1), a.pointer<char*>(2), a.pointer<char*>(3),
                        a.number(4));
    case SYS_unlinkat:
      return ::unlinkat(a.number(0), a.pointer<char>(1), a.number(2));
    case SYS_renameat2:
      return ::renameat2(a.number(0), a.pointer<char>(1), a.number(2), a.pointer<char>(3),
                         static_cast<unsigned>(a.word[4]));
    case SYS_utimensat:
      return ::utimensat(a.number(0), a.pointer<char>(1), a.pointer<timespec>(2), a.number(3));
#if defined(__x86_64__)
    case SYS_open:
      return with_errno(
          open_managed(AT_FDCWD, a.pointer<char>(0), a.number(1), static_cast<mode_t>(a.word[2])));
    case SYS_creat:
      return ::creat(a.pointer<char>(0), static_cast<mode_t>(a.word[1]));
    case SYS_stat:
      return ::stat(a.pointer<char>(0), a.pointer<Stat>(1));
    case SYS_lstat:
      return ::lstat(a.pointer<char>(0), a.pointer<Stat>(1));
    case SYS_unlink:
      return ::unlink(a.pointer<char>(0));
    case SYS_rename:
      return ::rename(a.pointer<char>(0), a.pointer<char>(1));
    case SYS_renameat:
      return ::renameat(a.number(0), a.pointer<char>(1), a.number(2), a.pointer<char>(3));
#endif
    default:
      return with_errno<long>(-ENOSYS);
  }
}

// Only the run's seccomp filter can keep every program from io_uring; this keeps those without a
// filter honest.
bool is_refused(long number) {
  if (__builtin_expect(number != SYS_io_uring_setup, 1)) return false;
  return Session::instance().is_configured() && getenv("CAIRN_ALLOW_IO_URING") == nullptr;
}

// Made by the kernel on the caller's stack, so that it can only be prepared for.
void look_at_clone(long number, long first, long second) {
  if (number == SYS_clone) before_clone(static_cast<unsigned long>(first));
  if (number == SYS_clone3)
    before_clone3(reinterpret_cast<void*>(first), static_cast<unsigned long>(second));
  if (number == SYS_unshare) before_unshare(static_cast<unsigned long>(first));
}

}  // namespace
}  // namespace cairn

// Same parameters as the real one, so that calls which are not ours leave by a jump: vfork() and
// clone() must not find a frame of ours on the stack they share.
CAIRN_HOOK(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
  if (__builtin_expect(!cairn::is_hooked(number), 1) && !cairn::is_refused(number)) {
    cairn::look_at_clone(number, a, b);
    return cairn::real::syscall.get()(number, a, b, c, d, e, f);
  }
  if (!cairn::is_hooked(number)) return cairn::with_errno<long>(-ENOSYS);
  const cairn::Arguments arguments{{a, b, c, d, e, f}};
  return cairn::dispatch_descriptor(number, arguments);
}
