// SPDX-License-Identifier: Apache-2.0
// The identity of the file behind a descriptor: the kernel reuses numbers, but not inodes of
// sockets and memory files.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "base/system_call.h"

namespace cairn {

// 0 when the number is free.
inline std::uint64_t inode_of(int fd) {
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) < 0) return 0;
  return status.stx_ino;
}

}  // namespace cairn
