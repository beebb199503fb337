// SPDX-License-Identifier: Apache-2.0
// O_PATH descriptors at the numbers of buffered files: a call that the library does not know fails
// loudly there (EBADF) instead of reading bytes that are out of date.
//
// Thread safety: any thread; also in a vfork child (system calls and stack only).
#pragma once

#include <fcntl.h>

#include "base/system_call.h"

namespace cairn {

inline bool is_placeholder(int fd) {
  const int flags = sys::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_PATH) != 0;
}

// Puts an O_PATH descriptor of the same file in the place of the real one. False when the kernel
// gives none.
bool place_placeholder(int fd, bool close_on_exec);

// Closes the real descriptor `fd` and opens an O_PATH descriptor of its file, which `other` has
// open as well. The kernel gives it the lowest free number: that is `fd`, unless another thread or
// a signal handler was faster. One system call less than to keep the number. Returns the number or
// -errno; `fd` is gone either way.
int exchange_for_placeholder(int fd, int other, bool close_on_exec);

// The number answers EBADF from here on: a placeholder stands there, or nothing.
void refuse_descriptor(int fd);

}  // namespace cairn
