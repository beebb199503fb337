// SPDX-License-Identifier: Apache-2.0
// Open files that a child or the next program gets without a hold on their description, because the
// table of holds is full. A process without a hold must not touch the description, which the table
// gives away when the last hold goes. So such a file is the kernel's for all processes that have
// it:
//
//   before   the parent     share_unheld(): the file is in through mode for as long as anybody may
//                           have it from here, and the offset is that of the private descriptor,
//                           which the kernel shares with the child
//   after    the child      become_plain(): the real descriptor stands where ours says, and the
//                           record is forgotten
//
// A file that cannot even be shared so answers EBADF in the child.
//
// Thread safety: share_unheld() from any thread; become_plain() in a child with one thread.
#pragma once

#include "frontends/descriptors/open_file.h"
#include "memory/buffer/object_io.h"

namespace cairn {

// Through mode for as long as the node lives, of a file that somebody gets without the service's
// knowledge: the mode lasts too long, never too short. 0 or -errno.
int enter_through_for_good(const ObjectAccess& access);

// 0 or -errno. Requires: this process has a hold. `why` is for the node's report.
int share_unheld(OpenFile& file,
                 protocol::UnservedReason why = protocol::UnservedReason::kTableFull);

// A descriptor of the file for a program that knows nothing of us, with the offset that all share.
// `*is_extra`: it is a description of its own, which the caller closes afterwards. Requires:
// share_unheld() has succeeded.
int plain_descriptor(OpenFile& file, bool* is_extra);

// Puts plain_descriptor() at the number `fd`, or makes it answer EBADF when the file is not shared.
void become_plain(int fd, OpenFile& file);

}  // namespace cairn
