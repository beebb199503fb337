// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/reading_descriptor.h"

#include <fcntl.h>

#include <atomic>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"

namespace cairn {
namespace {

// The object of a file that this process has locked; kNone for any other file.
ObjectIndex locked_object(int fd) {
  const Session& session = Session::instance();
  StoreStatus status;
  if (!PosixLocks::any() || !session.has_memory() || store_status(fd, &status) < 0)
    return ObjectIndex::kNone;
  const ObjectIndex object = session.memory().objects().find(status.key);
  return PosixLocks::is_locked(object) ? object : ObjectIndex::kNone;
}

constinit std::atomic<bool> has_duplicated{false};

// A descriptor of the object that reads, of whatever record; -1: there is none.
int reader_of(ObjectIndex object) {
  int reader = -1;
  DescriptorTable::for_each([&](int, OpenFile& file) {
    if (file.object == object && reader < 0)
      reader = file.may_read ? file.private_fd() : file.backing->extra_fd();
  });
  return reader;
}

}  // namespace

int open_to_read(int fd) {
  const ObjectIndex locked = locked_object(fd);
  const int reader = locked == ObjectIndex::kNone ? -1 : reader_of(locked);
  if (reader >= 0) {
    has_duplicated.store(true, std::memory_order_relaxed);
    return PrivateDescriptors::make(reader, true);
  }
  const int low = sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_RDONLY | O_CLOEXEC);
  if (low < 0) return low;
  const int high = locked == ObjectIndex::kNone ? PrivateDescriptors::make(low, true) : -1;
  if (high >= 0) {
    sys::close(low);
    return high;
  }
  // The number is missing in the program's sequence then, and nobody else's all the same.
  PrivateDescriptors::add(low);
  CAIRN_DCHECK(PrivateDescriptors::is_private(low));
  return low;
}

bool has_duplicate_to_read() { return has_duplicated.load(std::memory_order_relaxed); }

void close_after_reading(int fd) {
  if (PosixLocks::keeps_open(locked_object(fd), fd)) return;
  PrivateDescriptors::remove(fd);
  sys::close(fd);
}

void set_locked_readers_survive_exec(bool survives) {
  if (!PosixLocks::any()) return;
  DescriptorTable::for_each([&](int, OpenFile& file) {
    const int reader = file.backing->extra_fd();
    if (reader >= 0 && PosixLocks::is_locked(file.object))
      sys::fcntl(reader, F_SETFD, survives ? 0 : FD_CLOEXEC);
  });
}

}  // namespace cairn
