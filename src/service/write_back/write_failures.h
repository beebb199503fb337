// SPDX-License-Identifier: Apache-2.0
// A file system tells of failed writes, also those who have not heard of them.
//
// Thread safety: any thread. Ownership: none.
#pragma once

namespace cairn::node {

// Nothing that was written to the file system has failed since the descriptor's file was opened,
// whichever fsync has heard of it: since Linux 5.8, syncfs(2) tells each open description once of a
// failure that came after its opening. False also where the file system tells no such thing. May
// wait for the store.
bool has_lost_nothing(int fd);

}  // namespace cairn::node
