// SPDX-License-Identifier: Apache-2.0
// syscall(): programs that number their calls themselves get the same hooks as those that use
// libc's names.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include <stdio.h>
#include <stdlib.h>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_opening.h"
#include "frontends/files/kernel_aio.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/clone_calls.h"
#include "frontends/posix/map_calls.h"
#include "frontends/posix/raw_calls.h"
#include "frontends/posix/raw_syscall_table.h"

// glibc has it, and no header of it.
extern "C" int pivot_root(const char* root, const char* place_of_old);

namespace cairn {
namespace real {
namespace {
constinit RealCall<long(long, long, long, long, long, long, long)> syscall{"syscall"};
}  // namespace
}  // namespace real

namespace {

using Arguments = RawArguments;

// pselect6() has a sixth argument that holds the mask's address and its size.
const sigset_t* mask_of(const Arguments& a) {
  std::uintptr_t mask = 0;
  const auto* holder = a.pointer<const std::uintptr_t>(5);
  const bool is_given = holder != nullptr && get_user(&mask, holder);
  return is_given ? reinterpret_cast<const sigset_t*>(mask) : nullptr;
}

// Each of these answers a number of its own group, and asks the next one about any other.
long dispatch_data(long number, const Arguments& a);
long dispatch_name(long number, const Arguments& a);
long dispatch_attribute(long number, const Arguments& a);
long dispatch_wait(long number, const Arguments& a);
long dispatch_process(long number, const Arguments& a);

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
#if defined(__x86_64__)
    case SYS_dup2:
      return ::dup2(a.number(0), a.number(1));
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
    case SYS_tee:
      return ::tee(a.number(0), a.number(1), a.size(2), static_cast<unsigned>(a.word[3]));
    case SYS_getdents64:
      return ::getdents64(a.number(0), a.pointer<void>(1), a.size(2));
#if defined(__x86_64__)
    case SYS_getdents:
      if (DescriptorTable::find(a.number(0)) != nullptr) return with_errno<long>(-ENOTDIR);
      return real::syscall.get()(number, a.word[0], a.word[1], a.word[2], 0, 0, 0);
#endif
    case SYS_fadvise64:
      return with_errno<long>(-::posix_fadvise(a.number(0), a.word[1], a.word[2], a.number(3)));
    case SYS_readahead:
      return ::readahead(a.number(0), a.word[1], a.size(2));
    case SYS_cachestat:
    case SYS_finit_module:
    case SYS_kexec_file_load:
      return with_errno(call_on_file(number, a));
    case SYS_copy_file_range:
      return ::copy_file_range(a.number(0), a.pointer<off_t>(1), a.number(2), a.pointer<off_t>(3),
                               a.size(4), static_cast<unsigned>(a.word[5]));
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
    case SYS_open_by_handle_at:
      return with_errno(open_handle(a.number(0), a.pointer<void>(1), a.number(2)));
    case SYS_pidfd_getfd:
      return with_errno(get_descriptor(a.number(0), a.number(1), static_cast<unsigned>(a.word[2])));
    case SYS_open_tree:
      return with_errno(
          open_tree_managed(a.number(0), a.pointer<char>(1), static_cast<unsigned>(a.word[2])));
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
      return with_errno(set_times_raw(a));
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
      return dispatch_attribute(number, a);
  }
}

long dispatch_attribute(long number, const Arguments& a) {
  switch (number) {
    case SYS_fchmodat:
      return ::fchmodat(a.number(0), a.pointer<char>(1), static_cast<mode_t>(a.word[2]), 0);
    case SYS_fchownat:
      return ::fchownat(a.number(0), a.pointer<char>(1), static_cast<uid_t>(a.word[2]),
                        static_cast<gid_t>(a.word[3]), a.number(4));
    case SYS_linkat:
      return ::linkat(a.number(0), a.pointer<char>(1), a.number(2), a.pointer<char>(3),
                      a.number(4));
    case SYS_setxattr:
      return ::setxattr(a.pointer<char>(0), a.pointer<char>(1), a.pointer<void>(2), a.size(3),
                        a.number(4));
    case SYS_lsetxattr:
      return ::lsetxattr(a.pointer<char>(0), a.pointer<char>(1), a.pointer<void>(2), a.size(3),
                         a.number(4));
    case SYS_removexattr:
      return ::removexattr(a.pointer<char>(0), a.pointer<char>(1));
    case SYS_lremovexattr:
      return ::lremovexattr(a.pointer<char>(0), a.pointer<char>(1));
    case SYS_fchmodat2:
    case SYS_setxattrat:
    case SYS_getxattrat:
    case SYS_listxattrat:
    case SYS_removexattrat:
    case SYS_file_getattr:
    case SYS_file_setattr:
      return with_errno(call_at(number, a));
#if defined(__x86_64__)
    case SYS_futimesat:
      return ::futimesat(a.number(0), a.pointer<char>(1), a.pointer<timeval>(2));
    case SYS_utimes:
      return ::utimes(a.pointer<char>(0), a.pointer<timeval>(1));
    case SYS_utime:
      return ::utime(a.pointer<char>(0), a.pointer<utimbuf>(1));
    case SYS_chmod:
      return ::chmod(a.pointer<char>(0), static_cast<mode_t>(a.word[1]));
    case SYS_chown:
      return ::chown(a.pointer<char>(0), static_cast<uid_t>(a.word[1]),
                     static_cast<gid_t>(a.word[2]));
    case SYS_lchown:
      return ::lchown(a.pointer<char>(0), static_cast<uid_t>(a.word[1]),
                      static_cast<gid_t>(a.word[2]));
    case SYS_link:
      return ::link(a.pointer<char>(0), a.pointer<char>(1));
#endif
    default:
      return dispatch_wait(number, a);
  }
}

long dispatch_wait(long number, const Arguments& a) {
  switch (number) {
    case SYS_io_submit:
      return with_errno(
          KernelAio::submit(static_cast<aio_context_t>(a.word[0]), a.word[1], a.pointer<iocb*>(2)));
    case SYS_io_destroy:
      return with_errno(KernelAio::destroy(static_cast<aio_context_t>(a.word[0])));
    case SYS_epoll_ctl:
      return ::epoll_ctl(a.number(0), a.number(1), a.number(2), a.pointer<epoll_event>(3));
    case SYS_ppoll:
      return ::ppoll(a.pointer<pollfd>(0), static_cast<nfds_t>(a.word[1]), a.pointer<timespec>(2),
                     a.pointer<sigset_t>(3));
    case SYS_pselect6:
      return ::pselect(a.number(0), a.pointer<fd_set>(1), a.pointer<fd_set>(2),
                       a.pointer<fd_set>(3), a.pointer<timespec>(4), mask_of(a));
#if defined(__x86_64__)
    case SYS_select:
      return ::select(a.number(0), a.pointer<fd_set>(1), a.pointer<fd_set>(2), a.pointer<fd_set>(3),
                      a.pointer<timeval>(4));
    case SYS_poll:
      return ::poll(a.pointer<pollfd>(0), static_cast<nfds_t>(a.word[1]), a.number(2));
#endif
    default:
      return dispatch_process(number, a);
  }
}

long dispatch_process(long number, const Arguments& a) {
  switch (number) {
    case SYS_mmap:
      return reinterpret_cast<long>(pointer_or_errno(map_memory(
          {a.pointer<void>(0), a.size(1), a.number(2), a.number(3), a.number(4), a.word[5]})));
    case SYS_munmap:
      return with_errno<long>(Mappings::unmap(a.pointer<void>(0), a.size(1)));
    case SYS_mremap:
      return reinterpret_cast<long>(pointer_or_errno(Mappings::remap(
          {a.pointer<void>(0), a.size(1), a.size(2), a.number(3), a.pointer<void>(4)})));
    case SYS_setrlimit:
      return ::setrlimit(static_cast<__rlimit_resource>(a.number(0)), a.pointer<rlimit>(1));
    case SYS_prlimit64:
      return ::prlimit(a.number(0), static_cast<__rlimit_resource>(a.number(1)),
                       a.pointer<rlimit>(2), a.pointer<rlimit>(3));
    case SYS_chroot:
      return ::chroot(a.pointer<char>(0));
    case SYS_pivot_root:
      return ::pivot_root(a.pointer<char>(0), a.pointer<char>(1));
    case SYS_unshare:
      return ::unshare(a.number(0));
    case SYS_setns:
      return ::setns(a.number(0), a.number(1));
    case SYS_prctl:
      return ::prctl(a.number(0), a.word[1], a.word[2], a.word[3], a.word[4]);
    default:
      return with_errno<long>(-ENOSYS);
  }
}

// Only the run's seccomp filter can keep every program from io_uring; this keeps those without a
// filter honest.
bool is_refused() {
  return Session::instance().is_configured() && getenv("CAIRN_ALLOW_IO_URING") == nullptr;
}

// The kernel makes the child on the caller's stack, so we can only prepare for it.
void look_at_clone(long number, long first, long second) {
  if (number == SYS_clone) before_clone(static_cast<unsigned long>(first));
  if (number == SYS_clone3)
    before_clone3(reinterpret_cast<void*>(first), static_cast<unsigned long>(second));
}

}  // namespace
}  // namespace cairn

// Same parameters as the real one, so that calls which are not ours leave by a jump: vfork() and
// clone() must not find a frame of ours on the stack they share.
CAIRN_HOOK(long, syscall, (long number, long a, long b, long c, long d, long e, long f)) {
  const cairn::RawCall treatment = cairn::treatment_of(number);
  if (treatment == cairn::RawCall::kRefused && cairn::is_refused())
    return cairn::with_errno<long>(-ENOSYS);
  if (treatment == cairn::RawCall::kPrepared) cairn::look_at_clone(number, a, b);
  if (__builtin_expect(treatment != cairn::RawCall::kTranslated, 1))
    return cairn::real::syscall.get()(number, a, b, c, d, e, f);
  const cairn::Arguments arguments{{a, b, c, d, e, f}};
  return cairn::dispatch_descriptor(number, arguments);
}
