// SPDX-License-Identifier: Apache-2.0
// Processes that come and go: fork, daemon, system, limits, and the loading of libraries.
//
// Thread safety: start_processes() once, from the constructor.
#pragma once

namespace cairn {

// Remembers what makes this process a member of its run, and follows its forks.
void start_processes(char** environment);

}  // namespace cairn
