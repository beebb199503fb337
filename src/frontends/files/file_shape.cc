// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/file_shape.h"

#include <errno.h>
#include <cstdint>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/files/file_use.h"
#include "memory/backing/size_limit.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {

off_t file_size(OpenFile& file) {
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return -EIO;
  const Object& object = actor->object(file.object);
  // A size below the object's may be from before the last store: the next look at the file is
  // newer.
  constexpr int kLooksMax = 4;
  std::uint64_t size = 0;
  for (int look = 0; look < kLooksMax; ++look) {
    size = object.size.load(std::memory_order_acquire);
    if (object.through.load(std::memory_order_acquire) == 0) break;
    StoreStatus status;
    if (const int error = file.backing->status(&status); error < 0) return error;
    size = visible_stamp(object, status.stamp).size;
    if (size >= object.size.load(std::memory_order_acquire)) break;
  }
  CAIRN_DCHECK(size <= INT64_MAX);
  return static_cast<off_t>(size);
}

int file_truncate(OpenFile& file, off_t size) {
  if (size < 0) return -EINVAL;
  if (!file.may_write) return -EINVAL;
  Actor* actor = Session::instance().actor_if_any();
  const auto wanted = static_cast<std::uint64_t>(size);
  if (actor == nullptr) return -EIO;
  FileUse use(file);
  if (!use.begin()) return -EBADF;
  // The kernel knows how long a file may become; when it agrees, the buffer follows.
  if (wanted > checked_size.load(std::memory_order_relaxed) &&
      wanted > actor->object(use.object()).size.load()) {
    const int error = sys::ftruncate(use.descriptor(), size);
    if (error < 0) return error;
  }
  return truncate_object(use.access(*actor), wanted);
}

int file_allocate(OpenFile& file, int mode, off_t offset, off_t length) {
  if (offset < 0 || length <= 0) return -EINVAL;
  if (!file.may_write) return -EBADF;
  Actor* actor = Session::instance().actor_if_any();
  if (actor == nullptr) return -EIO;
  FileUse use(file);
  if (!use.begin()) return -EBADF;
  return allocate_object(use.access(*actor), mode, static_cast<std::uint64_t>(offset),
                         static_cast<std::uint64_t>(length));
}

}  // namespace cairn
