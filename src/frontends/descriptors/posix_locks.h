// SPDX-License-Identifier: Apache-2.0
// The files that this process has locked with fcntl().
//
// The kernel drops a process's POSIX locks on a file when the process closes any real descriptor of
// it. Our placeholders are O_PATH, whose close does not, and our own opens must not where a native
// program would not: so the library has to know. Locks that a fork did not inherit may still be
// listed here; that is harmless.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>

#include "base/ids.h"

namespace cairn {

class PosixLocks {
 public:
  static bool any();
  // kNone is not.
  static bool is_locked(ObjectIndex object);
  // Whether an exec passes locks on the file on: a fork did not.
  static bool may_pass_exec(ObjectIndex object);
  static void note(ObjectIndex object);
  // The application closed a descriptor of the file: all locks of the process on it go, as the
  // kernel does it.
  static void drop(ObjectIndex object, int private_fd);
  // The caller is about to close a descriptor of its own. Returns true if that would cost the
  // process its locks on the file: then the descriptor is not the caller's any more, and stays open
  // as a private one until the locks go (should far too many be kept: until the process ends).
  // `object`: kNone if it is not buffered.
  static bool keeps_open(ObjectIndex object, int fd);
  // An exec would close those that are kept open, and the kernel would drop the locks.
  static void set_kept_survive_exec(bool survive);
  static bool is_kept(int fd);
  // One of those, which stays as long as the locks do; -1: there is none.
  static int kept(ObjectIndex object);
  // After drop(): one of the descriptors kept open, which the caller closes; -1: no more.
  static int take_kept(ObjectIndex object);
};

}  // namespace cairn
