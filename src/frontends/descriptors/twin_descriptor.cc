// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/twin_descriptor.h"

#include <fcntl.h>

#include <algorithm>

#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"

namespace cairn {
namespace {

// Whether somebody else has the description, or works on it past the buffers.
bool is_shared(const OpenFile& file) {
  constexpr std::uint32_t kUsed = kOffsetInKernel | kHasOwnLocks;
  return file.description->references.load(std::memory_order_acquire) != 1 ||
         (file.description->flags.load(std::memory_order_acquire) & kUsed) != 0;
}

}  // namespace

void make_twin(OpenFile& file, bool close_on_exec) {
  if (file.twin_fd >= 0 || is_shared(file) || is_vfork_child()) return;
  constexpr std::uint32_t kKept =
      O_ACCMODE | O_SYNC | O_DSYNC | O_NOATIME | O_NONBLOCK | O_APPEND | O_DIRECT;
  const int flags = static_cast<int>(file.flags() & kKept) | O_CLOEXEC;
  const int opened = sys::openat(AT_FDCWD, DescriptorPath(file.private_fd()).text, flags);
  if (opened < 0) return;
  if (PosixLocks::is_locked(file.object)) {  // to close it would drop the locks
    PrivateDescriptors::add(opened);
    file.twin_fd = opened;
  } else {
    file.twin_fd = std::max(PrivateDescriptors::make(opened, true), -1);
    sys::close(opened);
  }
  if (file.twin_fd >= 0 && !close_on_exec) sys::fcntl(file.twin_fd, F_SETFD, 0);
}

void give_up_twin(OpenFile& file) {
  if (file.twin_fd < 0 || is_shared(file) || is_vfork_child() || PosixLocks::is_locked(file.object))
    return;
  const int twin = file.twin_fd;
  file.twin_fd = -1;
  PrivateDescriptors::remove(twin);
  sys::close(twin);
}

int set_flags_of_twin(const OpenFile& file, long flags) {
  return file.twin_fd < 0 ? 0 : sys::fcntl(file.twin_fd, F_SETFL, flags);
}

}  // namespace cairn
