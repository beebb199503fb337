// SPDX-License-Identifier: Apache-2.0
// How a file that the program opens becomes a buffered one: the kernel opens it, rules and tables
// decide, and a record takes the descriptor's place.
//
//   opened by the kernel --is_candidate()--> managed --share of the rules--> buffered
//                                               \--bypass, full table, unserved--> the kernel's
//
// All functions return a result or -errno and leave errno alone.
//
// Thread safety: any thread. Ownership: the record belongs to the descriptor table until
// close_tracked().
#pragma once

#include <sys/types.h>

#include "frontends/descriptors/open_file.h"

namespace cairn {

// Opens a path as open(2) does and buffers it if it is managed. Returns a descriptor or -errno.
int open_managed(int directory, const char* path, int flags, mode_t mode);

// Looks at a descriptor that a call of another kind has just opened (mkostemp, openat2...) and
// buffers its file if it is managed. `flags` are those of the open; O_TRUNC is among them only
// where the kernel has cut the file. The number stays the same. 0, or -EIO when the program must
// not use it.
int manage_opened(int fd, int flags);

// Whether an open with these flags leaves O_TRUNC out until it is known whether the file is
// buffered: where its descriptor can cut, and in a process without the node, which must not use
// such a file (Session::is_blind()). Else the kernel cuts it, and the buffer follows.
bool truncates_later(int flags);

// The O_TRUNC of an open, now that it is known whether the file is buffered (`file`, else null).
// `is_cut`: the kernel has not left it out. Returns `fd`, or closes it and returns -errno, as the
// open would have failed. An empty file needs no right to write: the open may have made it.
int truncate_opened(int fd, OpenFile* file, bool is_cut);

}  // namespace cairn
