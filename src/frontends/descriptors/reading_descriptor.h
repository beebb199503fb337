// SPDX-License-Identifier: Apache-2.0
// The private descriptor that reads a file which the program has open for writing only: a write of
// a part of a block needs the rest of it.
//
// The process may have locked the file with fcntl(). Then the descriptor is a duplicate of one that
// can read already, because an open gives a low number, which could not be closed again.
// lock_range() sees to it that there is one, where the file may be read at all.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

// These are ReadingDescriptors (memory/backing/posix_backing.h). -errno where there is none.
int open_to_read(int fd);
// Whether one of them may be a duplicate, which keeps a description of the program's, and the
// description's locks, alive.
bool has_duplicate_to_read();
// Should the file be locked, the descriptor stays open until the locks go.
void close_after_reading(int fd);
// An exec keeps the process's locks, but for those on a file of which it closes a descriptor.
void set_locked_readers_survive_exec(bool survives);

}  // namespace cairn
