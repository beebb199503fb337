// SPDX-License-Identifier: Apache-2.0
// stat() and its relatives, including the versioned names that programs built before glibc 2.33
// import.
#include <fcntl.h>
#include <sys/stat.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/private_descriptors.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/visible_status.h"

namespace cairn::real {
namespace {
using Stat = struct ::stat;
using Statx = struct ::statx;
constinit RealCall<int(const char*, Stat*)> stat{"stat64"};
constinit RealCall<int(const char*, Stat*)> lstat{"lstat64"};
constinit RealCall<int(int, Stat*)> fstat{"fstat64"};
constinit RealCall<int(int, const char*, Stat*, int)> fstatat{"fstatat64"};
constinit RealCall<int(int, const char*, int, unsigned, Statx*)> statx{"statx"};
constinit RealCall<int(int, const char*, Stat*)> xstat{"__xstat64"};
constinit RealCall<int(int, const char*, Stat*)> lxstat{"__lxstat64"};
constinit RealCall<int(int, int, Stat*)> fxstat{"__fxstat64"};
constinit RealCall<int(int, int, const char*, Stat*, int)> fxstatat{"__fxstatat64"};
}  // namespace
}  // namespace cairn::real

using cairn::may_need_overlay;
using cairn::with_errno;

CAIRN_HOOK(int, stat, (const char* path, struct ::stat* result)) {
  if (!may_need_overlay()) return cairn::real::stat(path, result);
  return with_errno(cairn::visible_stat(AT_FDCWD, path, 0, result));
}
CAIRN_TWIN(stat, stat64);

CAIRN_HOOK(int, lstat, (const char* path, struct ::stat* result)) {
  if (!may_need_overlay()) return cairn::real::lstat(path, result);
  return with_errno(cairn::visible_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, result));
}
CAIRN_TWIN(lstat, lstat64);

// An untracked descriptor may still be of a buffered file: opened before the run, or with O_PATH by
// the program. Programs that look for open descriptors (CPython's own tests) do it with this call;
// ours are not to be found.
CAIRN_HOOK(int, fstat, (int fd, struct ::stat* result)) {
  if (__builtin_expect(cairn::PrivateDescriptors::is_private(fd), 0)) {
    errno = EBADF;
    return -1;
  }
  if (!may_need_overlay() || fd < 0) return cairn::real::fstat(fd, result);
  return with_errno(cairn::visible_stat(fd, "", AT_EMPTY_PATH, result));
}
CAIRN_TWIN(fstat, fstat64);

CAIRN_HOOK(int, fstatat, (int directory, const char* path, struct ::stat* result, int flags)) {
  if (!may_need_overlay()) return cairn::real::fstatat(directory, path, result, flags);
  return with_errno(cairn::visible_stat(directory, path, flags, result));
}
CAIRN_TWIN(fstatat, fstatat64);

CAIRN_HOOK(int, statx,
           (int directory, const char* path, int flags, unsigned mask, struct ::statx* result)) {
  if (!may_need_overlay()) return cairn::real::statx(directory, path, flags, mask, result);
  return with_errno(cairn::visible_statx(directory, path, flags, mask, result));
}

CAIRN_HOOK(int, __xstat, (int version, const char* path, struct ::stat* result)) {
  if (!may_need_overlay()) return cairn::real::xstat(version, path, result);
  return with_errno(cairn::visible_stat(AT_FDCWD, path, 0, result));
}
CAIRN_TWIN(__xstat, __xstat64);

CAIRN_HOOK(int, __lxstat, (int version, const char* path, struct ::stat* result)) {
  if (!may_need_overlay()) return cairn::real::lxstat(version, path, result);
  return with_errno(cairn::visible_stat(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, result));
}
CAIRN_TWIN(__lxstat, __lxstat64);

CAIRN_HOOK(int, __fxstat, (int version, int fd, struct ::stat* result)) {
  if (!may_need_overlay() || fd < 0) return cairn::real::fxstat(version, fd, result);
  return with_errno(cairn::visible_stat(fd, "", AT_EMPTY_PATH, result));
}
CAIRN_TWIN(__fxstat, __fxstat64);

CAIRN_HOOK(int, __fxstatat,
           (int version, int directory, const char* path, struct ::stat* result, int flags)) {
  if (!may_need_overlay()) return cairn::real::fxstatat(version, directory, path, result, flags);
  return with_errno(cairn::visible_stat(directory, path, flags, result));
}
CAIRN_TWIN(__fxstatat, __fxstatat64);
