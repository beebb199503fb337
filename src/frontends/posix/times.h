// SPDX-License-Identifier: Apache-2.0
// Times that the application sets through the kernel, taken over into the buffer.
//
// Thread safety: any thread.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

// After a call on the private descriptor changed attributes: the file has a new ctime.
void adopt_kernel_times(OpenFile& file);
// The same after a call that named the file; `flags` are AT_*, as for statx(2). Anything but a
// buffered file is left alone.
void adopt_kernel_times(int directory, const char* path, int flags);

}  // namespace cairn
