// SPDX-License-Identifier: Apache-2.0
// Brings a region into the tiers, from its backing's bytes.
//
// A read leaves rubbish in its buffer where it finds that the block has gone while it copied, and
// then fills the block anew. So it never goes to the bytes that the block is filled from.
//
// Thread safety: any thread.
#pragma once

#include "memory/buffer/object_io.h"

namespace cairn {

// Whether all of the region has been read, and so is in the tiers as far as they have room.
// Requires: the object is a region that is open.
bool keep_whole_region(const ObjectAccess& access);

}  // namespace cairn
