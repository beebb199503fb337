// SPDX-License-Identifier: Apache-2.0
// Processes that come and go: fork, daemon, system, limits, and the loading of libraries.
//
// Thread safety: start_processes() once, from the constructor.
#pragma once

#include <sys/types.h>

namespace cairn {

// Remembers what makes this process a member of its run, and follows its forks.
void start_processes(char** environment);

// Around a fork that libc's own handlers do not see.
void before_fork();
void after_fork_in_parent();
void after_fork_in_child();
// The result of a fork in the parent: the child, or -1. Fork handlers do not get it.
void name_child_of_fork(pid_t child);

}  // namespace cairn
