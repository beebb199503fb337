// SPDX-License-Identifier: Apache-2.0
// How records of open files come from another process: from the image before exec, which names them
// in a table, and from the parent of a fork, whose memory the child has.
//
// Thread safety: the only thread of a fresh process, but for hold_if_live(). Ownership: a record
// belongs to this process once it has a hold in this process's name.
#pragma once

#include "frontends/descriptors/open_file.h"

namespace cairn {

// The real descriptors behind a placeholder, as OpenFile has them.
struct RealDescriptors {
  int private_fd = -1;
  int twin_fd = -1;
};

// Makes an inherited O_PATH placeholder `fd` ours: description, generation and hold as the parent
// passed them on (the hold already belongs to this process). Takes ownership of the real ones;
// `private_fd` may be `fd` itself when that is a real descriptor. Returns null when it does not
// fit, and when `fd` is past the end of the table: then a real descriptor stands there.
OpenFile* adopt(int fd, DescriptionIndex index, std::uint32_t generation, RealDescriptors real,
                HoldIndex hold);

// A hold of this process on a description that had `generation` when it was known to be the right
// one. kNone when it is another one by now, or the table of holds is full. Requires: attached.
HoldIndex hold_if_live(DescriptionIndex index, std::uint32_t generation,
                       HoldKind kind = HoldKind::kDescription);

// In a forked child that has attached: takes over, or makes, a hold for every record.
void take_over_holds(Owner parent);

}  // namespace cairn
