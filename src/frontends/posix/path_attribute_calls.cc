// SPDX-License-Identifier: Apache-2.0
// Attributes by path. They are the kernel's, but a change moves the file's ctime, and the buffer
// has to know: a write-back would move it once more otherwise.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "frontends/files/guard_change.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/times.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(const char*, mode_t)> chmod{"chmod"};
constinit RealCall<int(const char*, mode_t)> lchmod{"lchmod"};
constinit RealCall<int(int, const char*, mode_t, int)> fchmodat{"fchmodat"};
constinit RealCall<int(const char*, uid_t, gid_t)> chown{"chown"};
constinit RealCall<int(const char*, uid_t, gid_t)> lchown{"lchown"};
constinit RealCall<int(int, const char*, uid_t, gid_t, int)> fchownat{"fchownat"};
constinit RealCall<int(const char*, const char*, const void*, size_t, int)> setxattr{"setxattr"};
constinit RealCall<int(const char*, const char*, const void*, size_t, int)> lsetxattr{"lsetxattr"};
constinit RealCall<int(const char*, const char*)> removexattr{"removexattr"};
constinit RealCall<int(const char*, const char*)> lremovexattr{"lremovexattr"};
}  // namespace
}  // namespace real

namespace {

constexpr int kNamed = AT_SYMLINK_NOFOLLOW;  // the link itself and not what it points to

int after_change(int result, int directory, const char* path, int flags) {
  if (result == 0) {
    const ErrnoKeeper keeper;
    adopt_kernel_times(directory, path, flags & (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
  }
  return result;
}

}  // namespace
}  // namespace cairn

using cairn::after_change;
using cairn::GuardChange;
using cairn::kNamed;

CAIRN_HOOK(int, chmod, (const char* path, mode_t mode)) {
  const GuardChange guard(AT_FDCWD, path, 0, cairn::is_guarding_mode(mode));
  return after_change(cairn::real::chmod(path, mode), AT_FDCWD, path, 0);
}

CAIRN_HOOK(int, lchmod, (const char* path, mode_t mode)) {
  const GuardChange guard(AT_FDCWD, path, kNamed, cairn::is_guarding_mode(mode));
  return after_change(cairn::real::lchmod(path, mode), AT_FDCWD, path, kNamed);
}

CAIRN_HOOK(int, fchmodat, (int directory, const char* path, mode_t mode, int flags)) {
  const GuardChange guard(directory, path, flags, cairn::is_guarding_mode(mode));
  return after_change(cairn::real::fchmodat(directory, path, mode, flags), directory, path, flags);
}

CAIRN_HOOK(int, chown, (const char* path, uid_t user, gid_t group)) {
  return after_change(cairn::real::chown(path, user, group), AT_FDCWD, path, 0);
}

CAIRN_HOOK(int, lchown, (const char* path, uid_t user, gid_t group)) {
  return after_change(cairn::real::lchown(path, user, group), AT_FDCWD, path, kNamed);
}

CAIRN_HOOK(int, fchownat, (int directory, const char* path, uid_t user, gid_t group, int flags)) {
  return after_change(cairn::real::fchownat(directory, path, user, group, flags), directory, path,
                      flags);
}

CAIRN_HOOK(int, setxattr,
           (const char* path, const char* name, const void* value, size_t size, int flags)) {
  const GuardChange guard(AT_FDCWD, path, 0, cairn::is_guarding_attribute(name));
  return after_change(cairn::real::setxattr(path, name, value, size, flags), AT_FDCWD, path, 0);
}

CAIRN_HOOK(int, lsetxattr,
           (const char* path, const char* name, const void* value, size_t size, int flags)) {
  const GuardChange guard(AT_FDCWD, path, kNamed, cairn::is_guarding_attribute(name));
  return after_change(cairn::real::lsetxattr(path, name, value, size, flags), AT_FDCWD, path,
                      kNamed);
}

CAIRN_HOOK(int, removexattr, (const char* path, const char* name)) {
  return after_change(cairn::real::removexattr(path, name), AT_FDCWD, path, 0);
}

CAIRN_HOOK(int, lremovexattr, (const char* path, const char* name)) {
  return after_change(cairn::real::lremovexattr(path, name), AT_FDCWD, path, kNamed);
}
