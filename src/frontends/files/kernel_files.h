// SPDX-License-Identifier: Apache-2.0
// Files of the managed directories that this process has open as the kernel's own: those that a
// rule leaves unbuffered, and those that came from outside the run. As long as it has such a
// descriptor the file is in through mode, because another process, or another name of the file, may
// be subject to another rule: there is one truth, and here only the kernel can have it.
//
// No hook sees the close of such a descriptor: the process holds the files until it ends, or until
// there are so many that it asks the kernel for those still open. A file that finds no room in a
// table is in the service's ledger, for as long as this process and its children live.
//
// Thread safety: any thread.
#pragma once

#include "base/ids.h"
#include "memory/backing/posix_backing.h"

namespace cairn {

class KernelFiles {
 public:
  static bool any();
  // How many entries of the table are used; only tests use fewer than it has.
  static void set_capacity(unsigned capacity);
  // `fd` is a real descriptor of a managed file. `known` is its object, if the caller has looked
  // for it. 0, or -errno when the file did not get into through mode: then the program must not use
  // `fd`.
  static int share(int fd, const StoreStatus& status, ObjectIndex known = ObjectIndex::kNone);
  // Another process is about to have the same descriptors without this library's memory, or this
  // memory without the descriptors: neither's table could be right. Every buffered file becomes the
  // kernel's, at its number, and so does each file that either of them opens from here on.
  static void yield_everything();
  static bool has_everything();
  // A program that cannot be served is about to take this process's or vfork child's place: what it
  // gets of these files stays past the buffers. Requires: attached.
  static void keep_for_program();
  // A forked child has the same files open, in its own name. Requires: attached.
  static void count_again();
};

}  // namespace cairn
