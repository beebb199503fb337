// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/twin_descriptor.h"

#include <fcntl.h>

#include "base/descriptor_path.h"
#include "base/system_call.h"
#include "frontends/client/process_page.h"
#include "frontends/descriptors/posix_locks.h"
#include "frontends/descriptors/private_descriptors.h"

namespace cairn {
namespace {

// Whether somebody else has the description, or works on it past the buffers. A mapping has it too:
// locks that went to another description would not last as long as the mapping.
bool is_shared(const OpenFile& file) {
  constexpr std::uint32_t kUsed = kOffsetInKernel | kHasOwnLocks;
  return file.is_mapped || file.description->references.load(std::memory_order_acquire) != 1 ||
         (file.description->flags.load(std::memory_order_acquire) & kUsed) != 0;
}

// Whether the file may be opened once more and a descriptor of it closed: that would break the
// program's lease, and drop its fcntl() locks.
bool may_open_again(const OpenFile& file) {
  return !PosixLocks::is_locked(file.object) &&
         sys::fcntl(file.private_fd(), F_GETLEASE) == F_UNLCK;
}

}  // namespace

void make_twin(OpenFile& file, bool close_on_exec) {
  if (file.twin_fd >= 0 || is_shared(file) || is_vfork_child()) return;
  // A record that works on the program's own descriptor shares that.
  if (!PrivateDescriptors::is_private(file.private_fd()) || !may_open_again(file)) return;
  constexpr std::uint32_t kKept =
      O_ACCMODE | O_SYNC | O_DSYNC | O_NOATIME | O_NONBLOCK | O_APPEND | O_DIRECT;
  const auto flags = static_cast<int>(file.flags() & kKept);
  // Another one's lease is not waited for.
  const int opened =
      sys::openat(AT_FDCWD, DescriptorPath(file.private_fd()).text, flags | O_NONBLOCK | O_CLOEXEC);
  if (opened < 0) return;
  if ((flags & O_NONBLOCK) == 0) sys::fcntl(opened, F_SETFL, static_cast<long>(flags));
  const int twin = PrivateDescriptors::make(opened, close_on_exec);
  sys::close(opened);
  if (twin >= 0) file.twin_fd.store(twin, std::memory_order_release);
}

void give_up_twin(OpenFile& file) {
  if (file.twin_fd < 0 || is_shared(file) || is_vfork_child() || PosixLocks::is_locked(file.object))
    return;
  const int twin = file.twin_fd.exchange(-1);
  PrivateDescriptors::remove(twin);
  sys::close(twin);
}

int set_flags_of_twin(const OpenFile& file, long flags) {
  const int twin = file.twin_fd.load(std::memory_order_acquire);
  return twin < 0 ? 0 : sys::fcntl(twin, F_SETFL, flags);
}

}  // namespace cairn
