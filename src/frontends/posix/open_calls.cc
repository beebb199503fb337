// SPDX-License-Identifier: Apache-2.0
// open() and its relatives: every way by which libc makes a descriptor of a named file.
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/system_call.h"
#include "frontends/files/file_opening.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(char*, int, int)> mkostemps{"mkostemps64"};
}  // namespace
}  // namespace real

namespace {

bool has_mode(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

int make_temporary(char* pattern, int suffix_length, int flags) {
  const int fd = real::mkostemps(pattern, suffix_length, flags);
  if (fd < 0) return fd;
  const int saved = errno;
  const int error = manage_opened(fd, (flags & O_CLOEXEC) | O_RDWR | O_CREAT | O_EXCL);
  errno = saved;
  if (error == 0) return fd;
  sys::call(SYS_unlinkat, AT_FDCWD, sys::word(pattern), 0);
  sys::close(fd);
  return with_errno(error);
}

}  // namespace
}  // namespace cairn

#define CAIRN_READ_MODE(last)         \
  mode_t mode = 0;                    \
  if (cairn::has_mode(flags)) {       \
    va_list arguments;                \
    va_start(arguments, last);        \
    mode = va_arg(arguments, mode_t); \
    va_end(arguments);                \
  }

CAIRN_HOOK(int, open, (const char* path, int flags, ...)) {
  CAIRN_READ_MODE(flags)
  return cairn::with_errno(cairn::open_managed(AT_FDCWD, path, flags, mode));
}
CAIRN_TWIN(open, open64);
CAIRN_TWIN(open, __open);
CAIRN_TWIN(open, __open64);

CAIRN_HOOK(int, openat, (int directory, const char* path, int flags, ...)) {
  CAIRN_READ_MODE(flags)
  return cairn::with_errno(cairn::open_managed(directory, path, flags, mode));
}
CAIRN_TWIN(openat, openat64);

CAIRN_HOOK(int, creat, (const char* path, mode_t mode)) {
  return cairn::with_errno(cairn::open_managed(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode));
}
CAIRN_TWIN(creat, creat64);

// Fortified programs call these without a mode; where one is needed, that is a bug of theirs, at
// which glibc aborts. Here the mode is zero, as an unfortified program would pass by accident.
CAIRN_HOOK(int, __open_2, (const char* path, int flags)) {
  return cairn::with_errno(cairn::open_managed(AT_FDCWD, path, flags, 0));
}
CAIRN_TWIN(__open_2, __open64_2);

CAIRN_HOOK(int, __openat_2, (int directory, const char* path, int flags)) {
  return cairn::with_errno(cairn::open_managed(directory, path, flags, 0));
}
CAIRN_TWIN(__openat_2, __openat64_2);

CAIRN_HOOK(int, mkstemp, (char* pattern)) { return cairn::make_temporary(pattern, 0, 0); }
CAIRN_TWIN(mkstemp, mkstemp64);
CAIRN_HOOK(int, mkostemp, (char* pattern, int flags)) {
  return cairn::make_temporary(pattern, 0, flags);
}
CAIRN_TWIN(mkostemp, mkostemp64);
CAIRN_HOOK(int, mkstemps, (char* pattern, int suffix_length)) {
  return cairn::make_temporary(pattern, suffix_length, 0);
}
CAIRN_TWIN(mkstemps, mkstemps64);
CAIRN_HOOK(int, mkostemps, (char* pattern, int suffix_length, int flags)) {
  return cairn::make_temporary(pattern, suffix_length, flags);
}
CAIRN_TWIN(mkostemps, mkostemps64);
