// SPDX-License-Identifier: Apache-2.0
// Files that are this process's own although other users may write to the directory: a shared
// device for tiers, /tmp. Another user may have made a file or a link of the same name beforehand,
// and would read and change what is put there.
//
// Thread safety: functions without state. Ownership: the descriptors are the caller's.
#pragma once

#include <sys/types.h>

namespace cairn {

// A new, empty file that has no name and that nobody else has open. `flags` are added, such as
// O_DIRECT. Where the file system knows no files without a name it bears `path` for an instant;
// else only the directory of `path` is used. Returns the descriptor, for reading and writing, or
// -errno.
int open_unnamed_file(const char* path, int flags);

// The same with a name for an instant, on any file system.
int open_and_unlink_file(const char* path, int flags);

// A new, empty file named `path` for writing. A file or link of that name is removed first, never
// followed or reused. Returns the descriptor, -EEXIST when it cannot be removed, or another -errno.
int open_new_file(const char* path, mode_t mode);

// Whether what is read from `fd` is this user's own word, or root's: a regular file that no other
// user owns or may write.
bool is_written_by_user_alone(int fd);

}  // namespace cairn
