// SPDX-License-Identifier: Apache-2.0
// The locks of those who make a backing file longer: asking for its size and setting it is two
// calls, and a write that ends past it in between would be cut off.
//
// A thread takes its object's lock last, below the locks of blocks.
//
// Thread safety: that is their purpose. Ownership: they live in the control segment.
#pragma once

#include "base/ids.h"
#include "memory/arena/owned_lock.h"

namespace cairn {

struct ExtendLocks {
  static constexpr unsigned kCount = 64;
  static_assert((kCount & (kCount - 1)) == 0, "a number is masked out of an index");

  // Objects share locks; two of them then wait for each other's calls.
  OwnedLock& of(ObjectIndex object) { return locks[raw(object) % kCount]; }

  OwnedLock locks[kCount];
};
static_assert(sizeof(ExtendLocks) % 64 == 0, "whole lines");

}  // namespace cairn
