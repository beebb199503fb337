// SPDX-License-Identifier: Apache-2.0
// Reading, writing, seeking and storing an open file as the POSIX calls of the same names do.
//
// All functions return a result or -errno and leave errno alone. A process that the node has not
// taken (yet) gets EIO: what it was born with it must not use past the buffers.
//
// Thread safety: any thread; calls that use the shared offset exclude each other, in all processes
// that share it.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <climits>
#include <cstddef>
#include <cstdint>

#include "frontends/descriptors/open_file.h"
#include "memory/buffer/read_hit.h"

namespace cairn {

// The most bytes that one read or write call transfers, as in Linux.
inline constexpr std::size_t kTransferMax = 0x7ffff000;
static_assert(kTransferMax == (INT_MAX & ~(kPageBytes - 1)), "whole pages below 2 GiB");

// At and through the shared offset, as read(2), write(2) and lseek(2) do.
ssize_t file_read(OpenFile& file, void* buffer, std::size_t length);
ssize_t file_write(OpenFile& file, const void* buffer, std::size_t length);
off_t file_seek(OpenFile& file, off_t offset, int whence);

// At a given offset, as pread(2) and pwrite(2) do (with O_APPEND pwrite appends, as on Linux).
ssize_t file_pread_any(OpenFile& file, void* buffer, std::size_t length, off_t offset);
ssize_t file_pwrite(OpenFile& file, const void* buffer, std::size_t length, off_t offset);

// The plain hit of file_pread_any(), inlined into the hook: all of it, or false. Errors of the
// arguments, the buffer's too, are for that function.
[[gnu::always_inline]] inline bool file_pread_hit(OpenFile& file, void* buffer, std::size_t length,
                                                  off_t offset) {
  Actor* actor = Session::actor_at_hand();
  const bool is_plain = actor != nullptr && file.reads_plainly;
  return __builtin_expect(is_plain, 1) &&
         read_hit(*actor, actor->memory->objects().known(file.object), file.object, &file.hint,
                  {static_cast<std::uint64_t>(offset), buffer, length});
}
// The same as file_pread_any(), and quicker where it hits.
inline ssize_t file_pread(OpenFile& file, void* buffer, std::size_t length, off_t offset) {
  if (file_pread_hit(file, buffer, length, offset)) return static_cast<ssize_t>(length);
  return file_pread_any(file, buffer, length, offset);
}

// Vectors; `flags` are RWF_* and offset -1 means the shared offset, as in preadv2(2).
ssize_t file_readv(OpenFile& file, const iovec* parts, int count, off_t offset, int flags);
ssize_t file_writev(OpenFile& file, const iovec* parts, int count, off_t offset, int flags);

// Stores all that is dirty; with `durable` it is as safe afterwards as fsync(2) promises.
int file_sync(OpenFile& file, bool durable);

}  // namespace cairn
