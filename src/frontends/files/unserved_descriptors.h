// SPDX-License-Identifier: Apache-2.0
// Descriptors of buffered files in a process that was born with them and that the node did not
// take: they become the kernel's own, of the same files and at the same offsets.
//
// Thread safety: for the only thread of a fresh process. Ownership: gives the records back.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace cairn {

// In a forked child that is not attached. A descriptor whose file cannot be kept in through mode
// stays a placeholder, so that reads and writes fail (EBADF). Where the node has only failed to
// answer, everything stays as it is, and calls fail until it does.
void keep_inherited_through();

// Puts the real descriptor `given`, which works for that open description and stays open, in the
// place of the placeholder `fd`.
void make_real_descriptor_of(int fd, int given, DescriptionIndex description,
                             std::uint32_t generation);

}  // namespace cairn
