// SPDX-License-Identifier: Apache-2.0
// fcntl() and ioctl().
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/common/descriptor_table.h"
#include "frontends/common/file_io.h"
#include "frontends/common/guard_change.h"
#include "frontends/common/hook.h"
#include "frontends/common/lent_descriptors.h"
#include "frontends/common/open_file.h"
#include "frontends/common/private_descriptors.h"
#include "frontends/common/real_calls.h"
#include "frontends/posix/descriptor_calls.h"
#include "frontends/posix/lock_calls.h"
#include "frontends/posix/times.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, int, ...)> fcntl{"fcntl64"};
constinit RealCall<int(int, unsigned long, ...)> ioctl{"ioctl"};
}  // namespace
}  // namespace real

namespace {

// The status flags that F_SETFL may change, on Linux.
constexpr std::uint32_t kSettable = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;

int set_status_flags(OpenFile& file, long argument) {
  std::atomic<std::uint32_t>& flags = file.description->flags;
  std::uint32_t seen = flags.load(std::memory_order_relaxed);
  const auto wanted = static_cast<std::uint32_t>(argument) & kSettable;
  // Only what does not change the private descriptor's way of working goes to the kernel, for its
  // errors.
  const long raw_flags = argument & ~static_cast<long>(O_APPEND | O_DIRECT | O_ASYNC);
  const int error = sys::fcntl(file.private_fd(), F_SETFL, raw_flags);
  if (error < 0) return error;
  while (!flags.compare_exchange_weak(seen, (seen & ~kSettable) | wanted)) {
  }
  if (((seen ^ wanted) & (O_APPEND | O_DIRECT)) != 0) LentDescriptors::follow_flags(file);
  return 0;
}

int set_descriptor_flags(int fd, OpenFile& file, long argument) {
  const int result = sys::fcntl(fd, F_SETFD, argument);
  if (result >= 0 && !is_vfork_child()) update_close_on_exec(file);
  return result;
}

// A range at an address that the application gave.
int lock_given_range(OpenFile& file, int command, struct flock* given) {
  struct flock range;
  if (!get_user(&range, given)) return -EFAULT;
  const int error = lock_range(file, command, &range);
  if (error < 0 || (command != F_GETLK && command != F_OFD_GETLK)) return error;
  return put_user(given, range) ? 0 : -EFAULT;
}

int control(int fd, OpenFile& file, int command, long argument) {
  switch (command) {
    case F_DUPFD:
      return duplicate_above(fd, static_cast<int>(argument), false);
    case F_DUPFD_CLOEXEC:
      return duplicate_above(fd, static_cast<int>(argument), true);
    case F_GETFD:
      return sys::fcntl(fd, F_GETFD);
    case F_SETFD:
      return set_descriptor_flags(fd, file, argument);
    case F_GETFL:
      return static_cast<int>(file.flags());
    case F_SETFL:
      return set_status_flags(file, argument);
    case F_SETLK:
    case F_SETLKW:
    case F_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
    case F_OFD_GETLK:
      return lock_given_range(file, command, reinterpret_cast<struct flock*>(argument));
    default:
      return sys::fcntl(file.private_fd(), command, argument);
  }
}

// chattr +a and +i: whoever has the file open meets them at the next write, if the file system says
// so.
bool sets_guarding_attribute(unsigned long request, long argument) {
  if (request == FS_IOC_SETFLAGS)
    return (*reinterpret_cast<const int*>(argument) & (FS_APPEND_FL | FS_IMMUTABLE_FL)) != 0;
  if (request != FS_IOC_FSSETXATTR) return false;
  const auto* wanted = reinterpret_cast<const fsxattr*>(argument);
  return (wanted->fsx_xflags & (FS_XFLAG_APPEND | FS_XFLAG_IMMUTABLE)) != 0;
}

int device_control(int fd, OpenFile& file, unsigned long request, long argument) {
  switch (request) {
    case FIOCLEX:
      return set_descriptor_flags(fd, file, FD_CLOEXEC);
    case FIONCLEX:
      return set_descriptor_flags(fd, file, 0);
    case FIONBIO:
    case FIOASYNC:
      return 0;
    case FIONREAD: {
      const off_t here =
          static_cast<off_t>(file.description->offset.load(std::memory_order_relaxed));
      const off_t left = file_size(file) - here;
      const bool is_told = put_user(reinterpret_cast<int*>(argument), static_cast<int>(left));
      return is_told ? 0 : -EFAULT;
    }
    // Sharing extents would tie bytes of the backing store to a file whose newest bytes are in the
    // buffer.
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
      return -EOPNOTSUPP;
    case FS_IOC_FIEMAP:
      if (const int error = file_sync(file, false); error < 0) return error;
      break;
    default:
      break;
  }
  const GuardChange guard(&file, sets_guarding_attribute(request, argument));
  const auto result = static_cast<int>(
      sys::call(SYS_ioctl, file.private_fd(), static_cast<long>(request), argument));
  if (result >= 0 && (request == FS_IOC_SETFLAGS || request == FS_IOC_FSSETXATTR))
    adopt_kernel_times(file);
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::OpenFile;

CAIRN_HOOK(int, fcntl, (int fd, int command, ...)) {
  va_list arguments;
  va_start(arguments, command);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  OpenFile* file = DescriptorTable::find(fd);
  if (file != nullptr) return cairn::with_errno(cairn::control(fd, *file, command, argument));
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && cairn::may_be_ours(fd)) {
    return cairn::with_errno(
        cairn::duplicate_above(fd, static_cast<int>(argument), command == F_DUPFD_CLOEXEC));
  }
  return cairn::real::fcntl(fd, command, argument);
}
CAIRN_TWIN(fcntl, fcntl64);
CAIRN_TWIN(fcntl, __fcntl);

CAIRN_HOOK(int, ioctl, (int fd, unsigned long request, ...)) {
  va_list arguments;
  va_start(arguments, request);
  const long argument = va_arg(arguments, long);
  va_end(arguments);
  OpenFile* file = DescriptorTable::find(fd);
  if (file != nullptr)
    return cairn::with_errno(cairn::device_control(fd, *file, request, argument));
  if (request == FICLONE || request == FICLONERANGE) {
    // The source may be ours while the destination is not.
    const int source =
        request == FICLONE
            ? static_cast<int>(argument)
            : static_cast<int>(reinterpret_cast<file_clone_range*>(argument)->src_fd);
    if (DescriptorTable::find(source) != nullptr) return cairn::with_errno(-EOPNOTSUPP);
  }
  return cairn::real::ioctl(fd, request, argument);
}
