// SPDX-License-Identifier: Apache-2.0
// Which file another process has open under a number, as far as the kernel says it without asking
// the file system.
//
// Thread safety: a function without state.
// Source: proc_pid_fd(5), proc_pid_fdinfo(5); "ino:" is there since Linux 5.14.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace cairn::node {

// The path of the file with that inode; empty where the kernel does not say, or the process has
// closed it and the number may be another file's by now.
std::string path_of_file(pid_t pid, int descriptor, std::uint64_t inode);

}  // namespace cairn::node
