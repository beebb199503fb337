// SPDX-License-Identifier: Apache-2.0
// Whether anybody else has a file open: a process, or a mapping whose descriptor is closed.
//
// The kernel gives a lease for writing (fcntl(2), F_SETLEASE) on a file that nobody else has open.
// This asks for one and gives it back at once. An open that comes in between waits for that
// moment; with O_NONBLOCK it fails with EWOULDBLOCK instead.
//
// Thread safety: any thread, on a description that no other thread asks for at the same time. No
// signal reaches the program, and errno is left alone.
#pragma once

namespace cairn {

// True also when the kernel cannot tell: on a file system without leases, of another user's file.
// A descriptor opened with O_PATH counts for nobody.
bool may_have_other_openers(int fd);

}  // namespace cairn
