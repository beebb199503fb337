// SPDX-License-Identifier: Apache-2.0
// Where an open file ends, and how programs change that: as the POSIX calls of the same names do.
//
// All functions return a result or -errno and leave errno alone. A process that the node has not
// taken (yet) gets EIO.
//
// Thread safety: any thread.
#pragma once

#include <sys/types.h>

#include "frontends/descriptors/open_file.h"

namespace cairn {

off_t file_size(OpenFile& file);
int file_truncate(OpenFile& file, off_t size);
int file_allocate(OpenFile& file, int mode, off_t offset, off_t length);

}  // namespace cairn
