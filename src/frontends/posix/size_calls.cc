// SPDX-License-Identifier: Apache-2.0
// truncate() and fallocate().
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/descriptor_shortage.h"
#include "base/system_call.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/files/file_shape.h"
#include "frontends/files/named_writer.h"
#include "frontends/libc/hook.h"
#include "frontends/libc/real_calls.h"
#include "frontends/paths/buffer_candidate.h"
#include "frontends/paths/visible_status.h"
#include "frontends/posix/late_calls.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/size_limit.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {
namespace real {
namespace {
constinit RealCall<int(const char*, off_t)> truncate{"truncate64"};
constinit RealCall<int(int, off_t)> ftruncate{"ftruncate64"};
constinit RealCall<int(int, int, off_t, off_t)> fallocate{"fallocate64"};
constinit RealCall<int(int, off_t, off_t)> posix_fallocate{"posix_fallocate64"};
}  // namespace
}  // namespace real

namespace {

int truncate_through(PosixBacking& backing, off_t size) {
  const int fd = backing.descriptor();
  CAIRN_DCHECK(fd >= 0 && size >= 0);
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  StoreStatus status;
  if (actor == nullptr || store_status(fd, &status) < 0) return sys::ftruncate(fd, size);
  const ObjectIndex object = open_object(*actor, backing, status, true, &session);
  if (object == ObjectIndex::kNone) return sys::ftruncate(fd, size);
  const ObjectAccess access{*actor, object, backing, session};
  const auto wanted = static_cast<std::uint64_t>(size);
  const std::uint64_t now = access.object().size.load();
  // The kernel knows how long a file may become; when it refuses, nothing changes. And it knows
  // whether a file that has the size already gets new times: the store has to have it, too.
  int result = 0;
  if (wanted > now && wanted > checked_size.load(std::memory_order_relaxed))
    result = sys::ftruncate(fd, size);
  if (wanted == now) result = sync_object(access, false, nullptr);
  if (result == 0) result = truncate_object(access, wanted);
  (void)close_object(access, true);
  return result;
}

// Without a service for this process the kernel cuts the file, once it is the kernel's.
bool truncate_unserved(const char* path, off_t size, int* result) {
  Session& session = Session::instance();
  const Standing stands = session.standing();
  if (stands == Standing::kEnded || stands == Standing::kOutside) return false;
  if (!may_be_buffered(AT_FDCWD, path)) return false;
  const int fd = sys::openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
  *result = fd >= 0 ? session.use_unserved(fd) : is_short_of_descriptors(-fd) ? -EIO : fd;
  if (fd < 0) return true;
  if (*result == 0) *result = sys::truncate(path, size);
  sys::close(fd);
  return true;
}

// A path that names a buffered file is cut through a descriptor of our own. Returns false when it
// is not buffered.
bool truncate_by_path(const char* path, off_t size, int* result) {
  struct ::statx status;
  if (path == nullptr || size < 0 || !Session::instance().is_configured()) return false;
  if (!may_need_overlay())
    return !Session::instance().is_attached() && truncate_unserved(path, size, result);
  if (sys::statx(AT_FDCWD, path, 0, kOverlayMask, &status) < 0) return false;
  const ObjectIndex object = object_of(status);
  if (object == ObjectIndex::kNone) return false;
  if (Session::instance().memory().objects().at(object).is_in_trouble(kOwedByLog)) {
    *result = -EIO;
    return true;
  }
  NamedWriter writer(object, path);
  *result = writer.error() < 0 ? writer.error() : truncate_through(writer.backing(), size);
  return true;
}

}  // namespace
}  // namespace cairn

using cairn::DescriptorTable;
using cairn::OpenFile;
using cairn::with_errno;

CAIRN_HOOK(int, truncate, (const char* path, off_t size)) {
  int result = 0;
  if (!cairn::truncate_by_path(path, size, &result)) return cairn::real::truncate(path, size);
  return with_errno(result);
}
CAIRN_TWIN(truncate, truncate64);

CAIRN_HOOK(int, ftruncate, (int fd, off_t size)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::ftruncate(fd, size);
  return cairn::answer(fd, file, cairn::file_truncate(*file, size),
                       [=] { return ftruncate(fd, size); });
}
CAIRN_TWIN(ftruncate, ftruncate64);

CAIRN_HOOK(int, fallocate, (int fd, int mode, off_t offset, off_t length)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::fallocate(fd, mode, offset, length);
  return cairn::answer(fd, file, cairn::file_allocate(*file, mode, offset, length),
                       [=] { return fallocate(fd, mode, offset, length); });
}
CAIRN_TWIN(fallocate, fallocate64);

// Returns the error and leaves errno alone, unlike its neighbours.
CAIRN_HOOK(int, posix_fallocate, (int fd, off_t offset, off_t length)) {
  OpenFile* file = DescriptorTable::find(fd);
  if (file == nullptr) return cairn::real::posix_fallocate(fd, offset, length);
  const int result = cairn::file_allocate(*file, 0, offset, length);
  if (result != -EOPNOTSUPP) return -result;
  // Where the file system cannot reserve, the size alone is what later calls see.
  if (offset < 0 || length <= 0) return EINVAL;
  if (cairn::file_size(*file) >= offset + length) return 0;
  return -cairn::file_truncate(*file, offset + length);
}
CAIRN_TWIN(posix_fallocate, posix_fallocate64);
