// SPDX-License-Identifier: Apache-2.0
// readv(), writev() and their positioned and flagged forms.
#include <sys/uio.h>

#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_io.h"
#include "frontends/libc/cancellation.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/posix/late_calls.h"

namespace cairn::real {
namespace {
using Vector = ssize_t(int, const iovec*, int);
using VectorAt = ssize_t(int, const iovec*, int, off_t);
using VectorFlagged = ssize_t(int, const iovec*, int, off_t, int);
constinit RealCall<Vector> readv{"readv"};
constinit RealCall<Vector> writev{"writev"};
constinit RealCall<VectorAt> preadv{"preadv64"};
constinit RealCall<VectorAt> pwritev{"pwritev64"};
constinit RealCall<VectorFlagged> preadv2{"preadv64v2"};
constinit RealCall<VectorFlagged> pwritev2{"pwritev64v2"};
}  // namespace
}  // namespace cairn::real

using cairn::answer;
using cairn::cancellation_point;
using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(ssize_t, readv, (int fd, const iovec* parts, int count)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::readv(fd, parts, count);
  cancellation_point();
  return answer(fd, file, cairn::file_readv(*file, parts, count, -1, 0),
                [=] { return readv(fd, parts, count); });
}
CAIRN_HOOK(ssize_t, writev, (int fd, const iovec* parts, int count)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::writev(fd, parts, count);
  cancellation_point();
  return answer(fd, file, cairn::file_writev(*file, parts, count, -1, 0),
                [=] { return writev(fd, parts, count); });
}

// Only the flagged forms take -1 for the shared offset.
CAIRN_HOOK(ssize_t, preadv, (int fd, const iovec* parts, int count, off_t offset)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::preadv(fd, parts, count, offset);
  if (offset < 0) return with_errno<ssize_t>(-EINVAL);
  cancellation_point();
  return answer(fd, file, cairn::file_readv(*file, parts, count, offset, 0),
                [=] { return preadv(fd, parts, count, offset); });
}
CAIRN_TWIN(preadv, preadv64);

CAIRN_HOOK(ssize_t, pwritev, (int fd, const iovec* parts, int count, off_t offset)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::pwritev(fd, parts, count, offset);
  if (offset < 0) return with_errno<ssize_t>(-EINVAL);
  cancellation_point();
  return answer(fd, file, cairn::file_writev(*file, parts, count, offset, 0),
                [=] { return pwritev(fd, parts, count, offset); });
}
CAIRN_TWIN(pwritev, pwritev64);

CAIRN_HOOK(ssize_t, preadv2, (int fd, const iovec* parts, int count, off_t offset, int flags)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::preadv2(fd, parts, count, offset, flags);
  cancellation_point();
  return answer(fd, file, cairn::file_readv(*file, parts, count, offset, flags),
                [=] { return preadv2(fd, parts, count, offset, flags); });
}
CAIRN_TWIN(preadv2, preadv64v2);

CAIRN_HOOK(ssize_t, pwritev2, (int fd, const iovec* parts, int count, off_t offset, int flags)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::pwritev2(fd, parts, count, offset, flags);
  cancellation_point();
  return answer(fd, file, cairn::file_writev(*file, parts, count, offset, flags),
                [=] { return pwritev2(fd, parts, count, offset, flags); });
}
CAIRN_TWIN(pwritev2, pwritev64v2);
