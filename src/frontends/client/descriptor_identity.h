// SPDX-License-Identifier: Apache-2.0
// What a descriptor leads to: numbers are given out again, inodes of sockets and memory files are
// not.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>

#include <cstdint>

#include "base/system_call.h"

namespace cairn {

// 0 when it leads nowhere.
inline std::uint64_t inode_of(int fd) {
  struct ::statx status;
  if (sys::statx(fd, "", AT_EMPTY_PATH, STATX_INO, &status) < 0) return 0;
  return status.stx_ino;
}

}  // namespace cairn
