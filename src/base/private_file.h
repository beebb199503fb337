// SPDX-License-Identifier: Apache-2.0
// Files that are this process's own although other users may write to the directory: a shared
// device for tiers, /tmp. Another user may have made a file or a link of the same name beforehand,
// and would read and change what is put there.
//
// Thread safety: functions without state. Ownership: the descriptors are the caller's.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/status.h"

namespace cairn {

// Opens `directory` for making files in it. Errors: kDenied, with the directory and what to do,
// where every user may exchange its files: all may write to it, and it has no sticky bit. A project
// directory, to which its group may write, is not refused: files without a name cannot be
// exchanged, and open_and_unlink_file() looks at what it has made.
Result<int> open_safe_directory(const std::string& directory);

// The same as a question: whether open_safe_directory() would open it.
Status check_safe_directory(const std::string& directory);

// A new, empty file in the open `directory` that has no name and that nobody else has open. `flags`
// are added, such as O_DIRECT. Where the file system knows no files without a name it bears a
// random name for an instant. Returns the descriptor, for reading and writing, or -errno.
int open_unnamed_file(int directory, int flags);

// The same with `name` for an instant, on any file system. Returns -EEXIST, and leaves alone what
// is there, when something has the name; -EPERM when another user has touched the file meanwhile.
int open_and_unlink_file(int directory, const char* name, int flags);

// A new, empty file named `path` for writing. A file or link of that name is removed first, never
// followed or reused. Returns the descriptor, -EEXIST when it cannot be removed, or another -errno.
int open_new_file(const char* path, mode_t mode);

// Whether what is read from `fd` is this user's own word, or root's: a regular file that no other
// user owns or may write.
bool is_written_by_user_alone(int fd);

}  // namespace cairn
