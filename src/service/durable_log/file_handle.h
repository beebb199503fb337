// SPDX-License-Identifier: Apache-2.0
// A file's handle: finds the file again by what its file system calls it, whatever its path is.
//
// Thread safety: system calls.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cairn::durable {

// The handle of the open file (any descriptor, O_PATH too): its type, 4 bytes, then the bytes of
// name_to_handle_at(2). Empty where the file system has none.
std::vector<std::byte> handle_of(int fd);

// Opens the file with `flags`. `place` is a descriptor of anything in the same file system. Returns
// the descriptor, or -errno: -EPERM without CAP_DAC_READ_SEARCH, -ESTALE when it is gone.
int open_by_handle(int place, std::span<const std::byte> handle, int flags);

}  // namespace cairn::durable
