// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/number_room.h"

#include <fcntl.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/other_threads.h"
#include "frontends/client/session.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"

namespace cairn {
namespace {

OpenFile* owner_of(int fd) {
  OpenFile* owner = nullptr;
  DescriptorTable::for_each([&](int, OpenFile& file) {
    if (file.private_fd() == fd || file.twin_fd == fd || file.backing->extra_fd() == fd)
      owner = &file;
  });
  return owner;
}

bool move_away(OpenFile& owner, int fd) {
  if (owner.backing->extra_fd() == fd) {
    owner.backing->close_extra();
    return true;
  }
  const int flags = sys::fcntl(fd, F_GETFD);
  const int moved = sys::fcntl(fd, (flags & FD_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, fd + 1);
  if (moved < 0) return false;
  CAIRN_DCHECK(moved > fd);
  PrivateDescriptors::add(moved);
  PrivateDescriptors::remove(fd);
  if (owner.twin_fd == fd) {
    owner.twin_fd = moved;
  } else {
    owner.work_on(moved, static_cast<int>(owner.flags()) & O_ACCMODE);
  }
  return true;
}

}  // namespace

bool make_room_at(int fd) {
  CAIRN_DCHECK(PrivateDescriptors::is_private(fd));
  if (has_other_threads()) return false;
  Session& session = Session::instance();
  if (session.owns_descriptor(fd)) return session.relocate_descriptor(fd);
  if (OpenFile* owner = owner_of(fd); owner != nullptr)
    return !PosixLocks::is_locked(owner->object) && move_away(*owner, fd);
  if (PosixLocks::is_kept(fd)) return false;
  PrivateDescriptors::remove(fd);  // a leftover: no record works on it
  return true;
}

}  // namespace cairn
