// SPDX-License-Identifier: Apache-2.0
// Closing and duplicating descriptors, tracked or not, for the hooks of more than one family.
//
// All return a result or -errno. In a vfork child only the kernel's table changes.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

struct OpenFile;

int close_descriptor(int fd);
// False for a descriptor whose duplicates are libc's business.
bool may_be_ours(int fd);
// The lowest free number at or above `floor` becomes a duplicate. Requires: may_be_ours(fd).
int duplicate_above(int fd, int floor, bool close_on_exec);
// dup2() for numbers that differ, of which at least one is ours.
int duplicate_onto(int from, int to, bool close_on_exec);
// F_SETFD of a tracked descriptor.
int set_descriptor_flags(int fd, OpenFile& file, long flags);
// close_range(2); private descriptors survive.
int close_descriptors(unsigned first, unsigned last, unsigned flags);

}  // namespace cairn
