// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/placeholder.h"

#include <sys/mount.h>

#include "base/check.h"
#include "base/descriptor_path.h"
#include "frontends/descriptors/kernel_descriptors.h"

namespace cairn {

bool place_placeholder(int fd, bool close_on_exec) {
  CAIRN_DCHECK(fd >= 0);
  // open_tree() without cloning gives the descriptor at once; some containers refuse it, and /proc
  // serves in its place.
  auto placeholder = static_cast<int>(
      sys::call(SYS_open_tree, fd, sys::word(""), AT_EMPTY_PATH | OPEN_TREE_CLOEXEC));
  if (placeholder < 0) {
    placeholder = sys::openat(AT_FDCWD, DescriptorPath(fd).text, O_PATH | O_CLOEXEC);
  }
  if (placeholder < 0) return false;
  const bool placed = sys::dup3(placeholder, fd, close_on_exec ? O_CLOEXEC : 0) >= 0;
  sys::close(placeholder);
  return placed;
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
