// SPDX-License-Identifier: Apache-2.0
// fcntl().
#include <fcntl.h>
#include <stdarg.h>

#include "base/system_call.h"
#include "base/user_copy.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "frontends/files/direct_io.h"
#include "frontends/files/kernel_files.h"
#include "frontends/files/lent_descriptors.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/descriptor_calls.h"
#include "frontends/posix/exec_plan.h"
#include "frontends/posix/late_calls.h"
#include "frontends/posix/lock_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, int, ...)> fcntl{"fcntl64"};
}  // namespace
}  // namespace real

namespace {

constexpr int kSameDescription = 1027;  // F_DUPFD_QUERY, newer than Debian 12's headers

int set_status_flags(OpenFile& file, long argument) {
  std::atomic<std::uint32_t>& flags = file.description->flags;
  std::uint32_t seen = flags.load(std::memory_order_relaxed);
  const auto wanted = static_cast<std::uint32_t>(argument) & kSettableFlags;
  // Only what does not change the private descriptor's way of working goes to the kernel, for its
  // errors.
  const auto withheld = static_cast<long>(OpenFile::withheld_flags(wanted, file.may_write));
  const long raw_flags = argument & ~(withheld | O_ASYNC);
  if (withheld != 0) {
    const TwinGuard guard;
    make_twin(file, !survives_exec(file.private_fd()));
  }
  // First where all flags go, so that a refusal (a file system without O_DIRECT) changes nothing.
  if (const int refused = set_flags_of_twin(file, raw_flags | withheld); refused < 0)
    return refused;
  const int error = sys::fcntl(file.private_fd(), F_SETFL, raw_flags);
  if (error < 0) return error;
  while (!flags.compare_exchange_weak(seen, (seen & ~kSettableFlags) | wanted)) {
  }
  note_direct_flag(file);
  if (((seen ^ wanted) & (O_APPEND | O_DIRECT)) != 0) LentDescriptors::follow_flags(file);
  return 0;
}

// A range at an address that the application gave.
int lock_given_range(OpenFile& file, int command, struct flock* given) {
  struct flock range;
  if (!get_user(&range, given)) return -EFAULT;
  const int error = lock_range(file, command, &range);
  if (error < 0 || (command != F_GETLK && command != F_OFD_GETLK)) return error;
  return put_user(given, range) ? 0 : -EFAULT;
}

// A descriptor of the service would be in the way of a lease that the program may have: the service
// stores the file and closes it. One that it gets later would break the lease: the process writes
// what follows itself.
int set_lease(OpenFile& file, long kind) {
  store_before_use(file.private_fd());
  StoreStatus status;
  int error = kind == F_UNLCK ? 0 : file.backing->status(&status);
  if (error == 0 && kind != F_UNLCK)
    error = KernelFiles::share(file.private_fd(), status, file.object);
  if (error < 0) return error;
  {
    const TwinGuard guard;
    give_up_twin(file);
  }
  return sys::fcntl(file.private_fd(), F_SETLEASE, kind);
}

// Commands on the number alone, and those that wait for somebody else's lock while handlers run.
bool keeps_nothing_open(int command) {
  return command == F_DUPFD || command == F_DUPFD_CLOEXEC || command == F_GETFD ||
         command == F_SETFD || command == F_GETFL || command == kSameDescription ||
         command == F_SETLKW || command == F_OFD_SETLKW;
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
    case kSameDescription:
      // The placeholders are duplicated as the program's descriptors are.
      return sys::fcntl(fd, command, argument);
    case F_SETLEASE:
      return set_lease(file, argument);
    default:
      return sys::fcntl(file.private_fd(), command, argument);
  }
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
  OpenFile* found = DescriptorTable::find(fd);
  if (found != nullptr && cairn::keeps_nothing_open(command))
    return cairn::with_errno(cairn::control(fd, *found, command, argument));
  if (found != nullptr) {
    return cairn::with_open_file(fd, [=](OpenFile* file, int real) {
      return file != nullptr ? cairn::with_errno(cairn::control(fd, *file, command, argument))
                             : cairn::real::fcntl(real, command, argument);
    });
  }
  if ((command == F_DUPFD || command == F_DUPFD_CLOEXEC) && cairn::may_be_ours(fd)) {
    return cairn::with_errno(
        cairn::duplicate_above(fd, static_cast<int>(argument), command == F_DUPFD_CLOEXEC));
  }
  return cairn::real::fcntl(fd, command, argument);
}
CAIRN_TWIN(fcntl, fcntl64);
CAIRN_TWIN(fcntl, __fcntl);
