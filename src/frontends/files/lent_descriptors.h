// SPDX-License-Identifier: Apache-2.0
// Numbers of buffered files at which the kernel itself has to find the file, because it reads the
// number from memory (the requests of its asynchronous I/O). A real descriptor takes the
// placeholder's place, and the file is in through mode as long as that lasts: its bytes are where
// the kernel looks for them, and everybody else's reads and writes go there too.
//
//   buffered --lend()--> lent --take_back()--> buffered
//
// The real descriptor has a description of its own, with the flags that the program asked for
// (O_DIRECT, O_APPEND), which the library's private one must not have.
//
// Thread safety: any thread. Ownership: the application closes the numbers; the hold on the file is
// the process's.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

class LentDescriptors {
 public:
  // `fd` is a tracked number of `file`. 0 or -errno; for one that is lent already there is nothing
  // to do.
  static int lend(int fd, OpenFile& file);
  // The status flags of `file` have changed.
  static void follow_flags(OpenFile& file);
  // The kernel has finished with all of them. A file with fcntl() locks stays lent, because to
  // exchange its descriptor would drop them.
  static void take_back();
  // In a forked child, whose parent has lent some: nothing in the kernel works for the child.
  static void leave_to_parent();
};

}  // namespace cairn
