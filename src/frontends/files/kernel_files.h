// SPDX-License-Identifier: Apache-2.0
// Files of the managed directories that this process has open as the kernel's own: those that a
// rule leaves unbuffered, and what came from outside the run. As long as it has such a descriptor
// the file is in through mode, because another process, or another name of the file, may be subject
// to another rule: there is one truth, and here only the kernel can have it.
//
// Nobody sees when such a descriptor is closed: the files are held until the process ends, or until
// there are so many that the kernel is asked which of them it still has open. What finds no room in
// a table is in the service's ledger, for as long as this process and its children live.
//
// Thread safety: any thread.
#pragma once

#include "base/ids.h"
#include "memory/backing/backing_file.h"

namespace cairn {

class KernelFiles {
 public:
  static bool any();
  // Of the table; less than it has in tests alone.
  static void set_capacity(unsigned capacity);
  // `fd` is a real descriptor of a managed file. `known` is its object, if that has been looked
  // for. 0, or -errno when the file could not be put into through mode: then `fd` must not be used.
  static int share(int fd, const StoreStatus& status, ObjectIndex known = ObjectIndex::kNone);
  // Another process is about to have the same descriptors without this library's memory, or this
  // memory without the descriptors: neither's table could be right. All that is buffered becomes
  // the kernel's, at its number, and so does what either of them opens from here on.
  static void yield_everything();
  static bool has_everything();
  // A forked child has the same files open, in its own name. Requires: attached.
  static void count_again();
};

}  // namespace cairn
