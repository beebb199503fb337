// SPDX-License-Identifier: Apache-2.0
// The lock of a description's offset, for a call that reads or moves it.
//
// The description ends under the lock as well (file_closing.cc): a thread that comes too late knows
// it then, and does not move the offset of the file, of another process perhaps, that has the
// description next.
//
// Thread safety: a call has one of its own.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

class OffsetGuard {
 public:
  OffsetGuard(Actor& actor, const OpenFile& file)
      : file_(file), guard_(file.description->offset_lock, actor.self, actor.owners()) {}
  // Another thread has closed the file's last descriptor.
  bool is_late() const { return file_.has_lost_description(); }

 private:
  const OpenFile& file_;
  OwnedGuard guard_;
};

}  // namespace cairn
