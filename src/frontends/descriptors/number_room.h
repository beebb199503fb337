// SPDX-License-Identifier: Apache-2.0
// dup2() onto a number at which the library has a descriptor of its own.
//
// Thread safety: any thread.
#pragma once

namespace cairn {

// Moves the private descriptor at `fd` elsewhere. False where the program cannot have the number,
// as EBUSY says of one that is about to be used: another thread may be in a call on it, and would
// read or write the program's file in place of its own; or the process has fcntl() locks on the
// file, and would lose them with the descriptor.
// Requires: PrivateDescriptors::is_private(fd).
bool make_room_at(int fd);

}  // namespace cairn
