// SPDX-License-Identifier: Apache-2.0
// Attributes by descriptor: the kernel refuses them on an O_PATH placeholder, so they go to the
// real descriptor.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <termios.h>
#include <unistd.h>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/guard_change.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/late_calls.h"
#include "frontends/posix/times.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(int, mode_t)> fchmod{"fchmod"};
constinit RealCall<int(int, uid_t, gid_t)> fchown{"fchown"};
constinit RealCall<int(int, const char*, const void*, size_t, int)> fsetxattr{"fsetxattr"};
constinit RealCall<ssize_t(int, const char*, void*, size_t)> fgetxattr{"fgetxattr"};
constinit RealCall<ssize_t(int, char*, size_t)> flistxattr{"flistxattr"};
constinit RealCall<int(int, const char*)> fremovexattr{"fremovexattr"};
constinit RealCall<int(int)> isatty{"isatty"};
constinit RealCall<char*(int)> ttyname{"ttyname"};
constinit RealCall<int(int, char*, size_t)> ttyname_r{"ttyname_r"};
constinit RealCall<int(int, termios*)> tcgetattr{"tcgetattr"};
constinit RealCall<int(int, int, const termios*)> tcsetattr{"tcsetattr"};
constinit RealCall<pid_t(int)> tcgetpgrp{"tcgetpgrp"};
constinit RealCall<long(int, int)> fpathconf{"fpathconf"};
}  // namespace
}  // namespace real

namespace {

// The change moved the file's ctime, and our copy of it follows.
int after_change(int result, OpenFile* file) {
  if (result == 0 && file != nullptr) {
    const ErrnoKeeper keeper;
    adopt_kernel_times(*file);
  }
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::after_change;
using cairn::DescriptorTable;
using cairn::GuardChange;
using cairn::OpenFile;
using cairn::with_open_file;

CAIRN_HOOK(int, fchmod, (int fd, mode_t mode)) {
  return with_open_file(fd, [=](OpenFile* file, int real) {
    const GuardChange guard(file, cairn::is_guarding_mode(mode));
    return after_change(cairn::real::fchmod(real, mode), file);
  });
}

CAIRN_HOOK(int, fchown, (int fd, uid_t user, gid_t group)) {
  return with_open_file(fd, [=](OpenFile* file, int real) {
    return after_change(cairn::real::fchown(real, user, group), file);
  });
}

CAIRN_HOOK(int, fsetxattr, (int fd, const char* name, const void* value, size_t size, int flags)) {
  return with_open_file(fd, [=](OpenFile* file, int real) {
    const GuardChange guard(file, cairn::is_guarding_attribute(name));
    return after_change(cairn::real::fsetxattr(real, name, value, size, flags), file);
  });
}

CAIRN_HOOK(ssize_t, fgetxattr, (int fd, const char* name, void* value, size_t size)) {
  return with_open_file(
      fd, [=](OpenFile*, int real) { return cairn::real::fgetxattr(real, name, value, size); });
}

CAIRN_HOOK(ssize_t, flistxattr, (int fd, char* list, size_t size)) {
  return with_open_file(
      fd, [=](OpenFile*, int real) { return cairn::real::flistxattr(real, list, size); });
}

CAIRN_HOOK(int, fremovexattr, (int fd, const char* name)) {
  return with_open_file(fd, [=](OpenFile* file, int real) {
    return after_change(cairn::real::fremovexattr(real, name), file);
  });
}

// libc asks by an ioctl of its own, which a placeholder answers with EBADF instead of ENOTTY.
CAIRN_HOOK(int, isatty, (int fd)) {
  if (DescriptorTable::find(fd) == nullptr) return cairn::real::isatty(fd);
  errno = ENOTTY;
  return 0;
}

CAIRN_HOOK(char*, ttyname, (int fd)) {
  return with_open_file(fd, [=](OpenFile*, int real) { return cairn::real::ttyname(real); });
}

CAIRN_HOOK(int, ttyname_r, (int fd, char* name, size_t size)) {
  return with_open_file(
      fd, [=](OpenFile*, int real) { return cairn::real::ttyname_r(real, name, size); });
}

CAIRN_HOOK(int, tcgetattr, (int fd, termios* settings)) {
  return with_open_file(
      fd, [=](OpenFile*, int real) { return cairn::real::tcgetattr(real, settings); });
}

CAIRN_HOOK(int, tcsetattr, (int fd, int when, const termios* settings)) {
  return with_open_file(
      fd, [=](OpenFile*, int real) { return cairn::real::tcsetattr(real, when, settings); });
}

CAIRN_HOOK(pid_t, tcgetpgrp, (int fd)) {
  return with_open_file(fd, [=](OpenFile*, int real) { return cairn::real::tcgetpgrp(real); });
}

CAIRN_HOOK(long, fpathconf, (int fd, int name)) {
  return with_open_file(fd,
                        [=](OpenFile*, int real) { return cairn::real::fpathconf(real, name); });
}
