// SPDX-License-Identifier: Apache-2.0
// Times that the application sets through the kernel, taken over into the buffer.
//
// Thread safety: any thread.
#pragma once

#include "frontends/common/open_file.h"

namespace cairn {

// After a call on the private descriptor changed attributes: the file has a new ctime.
void adopt_kernel_times(OpenFile& file);

}  // namespace cairn
