// SPDX-License-Identifier: Apache-2.0
// Blocks for the tests of those who move them, as a client would have left them there.
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include "memory/catalog/testing/block_probe.h"
#include "memory/tiers/actor.h"

namespace cairn::testing {

// A clean and whole block of `object`, last used at `recency_ms`; its bytes are whatever the bucket
// held.
inline BucketIndex place_block(Actor& actor, ObjectIndex object, TierId tier, std::uint32_t number,
                               std::uint32_t recency_ms, AccountId account = AccountId::kNobody) {
  const NodeMemory& memory = *actor.memory;
  Lease::Fresh fresh;
  FreshBlock free = actor.leases[raw(tier)].take(memory.pool(tier), {SizeClass::k64KiB, 1, account},
                                                 actor.worker(), &fresh);
  EXPECT_TRUE(free) << "the tier is full";
  if (!free) return BucketIndex::kNone;
  LockedBlock block;
  const BucketIndex bucket =
      free.publish(object, static_cast<BlockNumber>(number), PlacementReason::kNone, &block);
  EXPECT_TRUE(block) << "it is somewhere already";
  if (block) block.fill(kAllPages);
  BlockProbe(memory.block(bucket)).set_recency(recency_ms);
  return bucket;
}

}  // namespace cairn::testing
