// SPDX-License-Identifier: Apache-2.0
// Times that the application sets through the kernel, taken over into the buffer.
//
// Thread safety: any thread.
#pragma once

#include <time.h>

#include "frontends/common/open_file.h"

namespace cairn {

// After a call on the private descriptor changed attributes; `mtime_set`: the modification time
// too.
void adopt_kernel_times(OpenFile& file, bool mtime_set, const timespec* requested = nullptr);
// The same for a file that was named by path, if it is buffered.
void adopt_kernel_times_at(int directory, const char* path, int flags, bool mtime_set,
                           const timespec* requested = nullptr);

}  // namespace cairn
