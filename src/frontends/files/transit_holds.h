// SPDX-License-Identifier: Apache-2.0
// The holds in transit that this process has made for its children, until they have taken them
// over. A child that ends before that cannot give them back, and its parent, in whose name they
// are, may live on for long. So the parent notes the child of each hold, and releases the holds of
// children that have ended.
//
//   made              noted            child attached        child ended without
//   hold in transit   with child's pid forgotten here        released here
//
// Thread safety: any thread, and a vfork child.
#pragma once

#include <sys/types.h>

#include "base/ids.h"
#include "memory/catalog/description_table.h"

namespace cairn {

// Releases a hold, and closes its description if that was the last one.
void give_back_hold(HoldIndex hold, Owner owner);
// Closes a description that has lost its last hold otherwise than by a close of its file.
void close_description(DescriptionIndex index);

class TransitHolds {
 public:
  // Notes that the hold is for `child`; an older note of its number is stale. A hold for an unknown
  // child (0), or past the capacity, is not noted: it is released when this process ends.
  static void note(HoldIndex hold, pid_t child);
  // Stands for a child that this thread is about to make, until name_child() or forget().
  static pid_t unborn();
  // This thread's unborn child is there; -1: it could not be made, and its holds are released.
  static void name_child(pid_t child);
  // The same where the library does not see what fork() returns, because it was loaded after the
  // program: this thread has no unborn child any more, and a process without children has not made
  // one, or its child has ended. With others alive nothing is known, and the holds stay until this
  // process ends.
  static void give_up_unborn_if_childless() {
    if (__builtin_expect(any(), 0)) give_up_unborn();
  }
  // The caller releases the holds for `child` itself, or nothing is known of it.
  static void forget(pid_t child);
  static void forget_unborn() {
    if (__builtin_expect(any(), 0)) forget(unborn());
  }
  // Releases the holds of children that have ended. Cheap when there are no notes.
  static void settle() {
    if (__builtin_expect(any(), 0)) settle_noted();
  }
  // In a forked child: the notes are its parent's.
  static void forget_all();

  static constexpr unsigned kNotesMax = 4096;

 private:
  static bool any();
  static void settle_noted();
  static void give_up_unborn();
};

}  // namespace cairn
