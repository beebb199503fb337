// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/unheld_files.h"

#include <errno.h>

#include "base/check.h"
#include "base/system_call.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/kernel_descriptors.h"
#include "frontends/descriptors/placeholder.h"
#include "frontends/descriptors/twin_descriptor.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"

namespace cairn {

int enter_through_for_good(const ObjectAccess& access) {
  if (const int error = enter_through(access); error < 0) return error;
  constexpr std::uint32_t kMarks = kThroughAbandoned | kThroughSuspected;
  if ((access.object().through.load() & ~kMarks) < kThroughForGood) keep_through_for_good(access);
  leave_through(access.actor, access.index);
  return 0;
}

int share_unheld(OpenFile& file, protocol::UnservedReason why) {
  if (file.is_kept_through) return 0;
  file.backing->note_shared();
  Session& session = Session::instance();
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return -EIO;
  if (session.keep_through(file.private_fd(), why) < 0) {
    if (const int error = enter_through_for_good(access_of(*actor, file)); error < 0) return error;
  }
  const TwinGuard guard;
  make_twin(file, !survives_exec(file.private_fd()));
  (void)give_offset_to_kernel(*actor, *file.description, file.shared_fd());
  // A vfork child has a connection of its own, which ends with its program; the record is its
  // parent's, and the next child's.
  if (!is_vfork_child()) file.is_kept_through = true;
  return 0;
}

int plain_descriptor(OpenFile& file, bool* is_extra) {
  CAIRN_DCHECK(file.is_kept_through || is_vfork_child());
  *is_extra = false;
  const std::uint32_t flags = file.flags();
  if (file.twin_fd >= 0 || (file.withheld_flags() & O_APPEND) == 0) return file.shared_fd();
  // The private descriptor must not append, so an appending program gets a description of its own.
  char path[kDescriptorPathBytes];
  write_descriptor_path(file.private_fd(), path);
  const int appending =
      sys::openat(AT_FDCWD, path, static_cast<int>(flags & O_ACCMODE) | O_APPEND | O_CLOEXEC);
  if (appending < 0) return file.private_fd();
  // Reading begins where the others are, also when they have gone by then.
  const off_t offset = sys::lseek(file.private_fd(), 0, SEEK_CUR);
  if (offset > 0) (void)sys::lseek(appending, offset, SEEK_SET);
  *is_extra = true;
  return appending;
}

void become_plain(int fd, OpenFile& file) {
  const int flags = survives_exec(fd) ? 0 : O_CLOEXEC;
  if (!file.is_kept_through && !is_vfork_child()) {
    if (file.private_fd() == fd) refuse_descriptor(fd);
    return;
  }
  bool is_extra = false;
  const int plain = plain_descriptor(file, &is_extra);
  if (plain != fd) sys::dup3(plain, fd, flags);
  if (is_extra) sys::close(plain);
}

}  // namespace cairn
