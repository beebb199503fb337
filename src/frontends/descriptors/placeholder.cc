// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/placeholder.h"

#include <sys/mount.h>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "frontends/descriptors/kernel_descriptors.h"

namespace cairn {
namespace {

static_assert(OPEN_TREE_CLOEXEC == O_CLOEXEC);

// open_tree() without cloning gives the descriptor at once; some containers refuse it, and /proc
// serves in its place. `flags`: O_CLOEXEC or nothing.
int open_path_descriptor(int fd, int flags) {
  const auto made =
      static_cast<int>(sys::call(SYS_open_tree, fd, sys::word(""), AT_EMPTY_PATH | flags));
  return made >= 0 ? made : sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_PATH | flags);
}

}  // namespace

bool place_placeholder(int fd, bool close_on_exec) {
  CAIRN_DCHECK(fd >= 0);
  const int placeholder = open_path_descriptor(fd, O_CLOEXEC);
  if (placeholder < 0) return false;
  const bool placed = sys::dup3(placeholder, fd, close_on_exec ? O_CLOEXEC : 0) >= 0;
  sys::close(placeholder);
  return placed;
}

int exchange_for_placeholder(int fd, int other, bool close_on_exec) {
  CAIRN_DCHECK(fd >= 0 && other >= 0 && fd != other);
  sys::close(fd);
  return open_path_descriptor(other, close_on_exec ? O_CLOEXEC : 0);
}

void refuse_descriptor(int fd) {
  char path[kDescriptorPathBytes];
  write_descriptor_path(fd, path);
  const int flags = survives_exec(fd) ? 0 : O_CLOEXEC;
  const int placeholder = sys::openat(AT_FDCWD, path, O_PATH | O_CLOEXEC);
  if (placeholder < 0 || sys::dup3(placeholder, fd, flags) < 0) sys::close(fd);
  if (placeholder >= 0) sys::close(placeholder);
}

}  // namespace cairn
