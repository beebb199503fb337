// SPDX-License-Identifier: Apache-2.0
// Locks on buffered files: taken on the real descriptor, so that programs outside the run see them.
//
// Thread safety: any thread.
#pragma once

#include <fcntl.h>

#include "frontends/descriptors/open_file.h"

namespace cairn {

// fcntl()'s record locks of both kinds. 0 or -errno.
int lock_range(OpenFile& file, int command, struct flock* range);

}  // namespace cairn
