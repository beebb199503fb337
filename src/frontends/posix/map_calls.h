// SPDX-License-Identifier: Apache-2.0
// What the hook of mmap() does. A program that hears of each mapping may have written a jump over
// the first instructions of the hook (UCX does, below MPI), and then makes the system call by its
// number: syscall() comes here, and not to the hook again.
//
// Thread safety: any thread.
#pragma once

#include "frontends/files/mappings.h"

namespace cairn {

// Returns an address or -errno.
void* map_memory(const Mappings::Request& request);

// -errno, as a pointer, becomes MAP_FAILED with errno set.
void* pointer_or_errno(void* result);

}  // namespace cairn
