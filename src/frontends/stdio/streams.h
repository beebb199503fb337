// SPDX-License-Identifier: Apache-2.0
// stdio over buffered files: connects libc's streams to the descriptor table.
//
// Thread safety: start_streams() once, from the library's constructor.
#pragma once

namespace cairn {

void start_streams();

}  // namespace cairn
