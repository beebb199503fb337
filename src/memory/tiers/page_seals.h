// SPDX-License-Identifier: Apache-2.0
// Pages in RAM that are known by their checksums: those that have come from the store or, clean,
// from a file tier, as long as nothing of their block has changed. They are looked at when the
// block leaves RAM, and under Checksums::kAll before its first read.
//
// The seal of a block ends with the next change of its sequence, so a write costs nothing for it.
// The store has whatever is sealed: a page that is found broken is forgotten, and read again.
//
// Thread safety: as the functions say. Ownership: none.
#pragma once

#include "memory/tiers/actor.h"

namespace cairn {

// These pages have just been filled and are clean. Requires: fill() was called under this lock.
void seal_filled(const NodeMemory& memory, LockedBlock& block, std::uint16_t pages);
// The block has just come from `from` in a file tier, whose words say what its pages are. Requires:
// relocate() was called under this lock, and `from` is not used again yet.
void seal_carried(const NodeMemory& memory, LockedBlock& block, BucketIndex from);
// The sealed pages of a bucket in RAM that are not what they were. The answer holds if
// afterwards the bucket's sequence is still `sequence`, and no other process has the lock.
std::uint16_t broken_pages(const NodeMemory& memory, BucketIndex bucket, std::uint32_t sequence);
// Takes broken pages out of the block, as far as the store has them, and counts them.
void forget_broken(const NodeMemory& memory, UnclaimedBlock& block, std::uint16_t broken);

}  // namespace cairn
