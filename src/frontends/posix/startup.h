// SPDX-License-Identifier: Apache-2.0
// The library's start in a process.
//
// Thread safety: called once, from the constructor, before other threads exist.
#pragma once

namespace cairn {

// Configures the session from the environment and attaches. Does nothing outside a run.
void start_session();

}  // namespace cairn
