// SPDX-License-Identifier: Apache-2.0
// Reading and writing at an offset that the kernel keeps, because processes that the node does not
// serve share it: only the kernel moves it in one step with the bytes, for all of them.
//
// All functions return a result or -errno and leave errno alone.
//
// Thread safety: any thread; the caller holds the description's offset lock, by which served
// processes exclude each other.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "frontends/files/file_use.h"

namespace cairn {

// Whether a process may move the offset without its lock. Such a process keeps the file in through
// mode for as long as it lives, and is made only while the lock is free: the answer holds until the
// lock is given back.
bool is_offset_moved_by_kernel(Actor& actor, OpenFile& file);

// readv(2) and writev(2). Requires: is_offset_moved_by_kernel(), and no O_APPEND.
ssize_t read_at_kernel_offset(Actor& actor, FileUse& use, const iovec* parts, int count);
ssize_t write_at_kernel_offset(Actor& actor, FileUse& use, const iovec* parts, int count);

}  // namespace cairn
