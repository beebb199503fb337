// SPDX-License-Identifier: Apache-2.0
// Whether the calling thread is the only one of its process.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

// True also where the kernel does not tell. Costs a system call.
bool has_other_threads();

}  // namespace cairn
