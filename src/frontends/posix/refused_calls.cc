// SPDX-License-Identifier: Apache-2.0
// Calls that the kernel refuses for a regular file, with another error than for a placeholder.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<ssize_t(int, int, size_t, unsigned)> tee{"tee"};
constinit RealCall<ssize_t(int, void*, size_t)> getdents64{"getdents64"};
}  // namespace
}  // namespace real

namespace {

bool allows(int fd, int access) {
  if (const OpenFile* file = DescriptorTable::find(fd); file != nullptr)
    return access == O_RDONLY ? file->may_read : file->may_write;
  const int flags = sys::fcntl(fd, F_GETFL);
  if (flags < 0 || (flags & O_PATH) != 0) return false;
  return (flags & O_ACCMODE) == O_RDWR || (flags & O_ACCMODE) == access;
}

// A tee between a pipe and a file, or between two files.
ssize_t refuse_tee(int from, int to, size_t length, unsigned flags) {
  constexpr unsigned kKnown = SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;
  if ((flags & ~kKnown) != 0) return -EINVAL;
  if (length == 0) return 0;
  return allows(from, O_RDONLY) && allows(to, O_WRONLY) ? -EINVAL : -EBADF;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::with_errno;

CAIRN_HOOK(ssize_t, tee, (int from, int to, size_t length, unsigned flags)) {
  if (DescriptorTable::find(from) == nullptr && DescriptorTable::find(to) == nullptr)
    return cairn::real::tee(from, to, length, flags);
  return with_errno(cairn::refuse_tee(from, to, length, flags));
}

CAIRN_HOOK(ssize_t, getdents64, (int fd, void* out, size_t length)) {
  if (DescriptorTable::find(fd) == nullptr) return cairn::real::getdents64(fd, out, length);
  return with_errno<ssize_t>(-ENOTDIR);
}
