// SPDX-License-Identifier: Apache-2.0
// Blocks for the tests of those who move them, as a client would have left them there.
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include "memory/tiers/actor.h"

namespace cairn::testing {

// A clean and whole block of `object`, last used at `recency_ms`; its bytes are whatever the bucket
// held.
inline BucketIndex place_block(Actor& actor, ObjectIndex object, TierId tier, std::uint32_t number,
                               std::uint32_t recency_ms, AccountId account = AccountId::kNobody) {
  const NodeMemory& memory = *actor.memory;
  Lease::Fresh fresh;
  const BucketIndex bucket = actor.leases[raw(tier)].take(
      memory.pool(tier), SizeClass::k64KiB, actor.self, actor.owners(), 1, &fresh, account);
  EXPECT_NE(bucket, BucketIndex::kNone) << "the tier is full";
  if (bucket == BucketIndex::kNone) return bucket;
  BlockDescriptor& block = memory.block(bucket);
  block.set_identity(object, static_cast<BlockNumber>(number));
  block.enter(BlockState::kFilling);
  block.valid_pages.store(0xffff);
  block.recency_ms.store(recency_ms);
  actor.object(object).count_block(static_cast<BlockNumber>(number));
  memory.directory().publish(bucket, actor.self, actor.owners());
  block.enter(BlockState::kClean);
  actor.unlock(block, true);
  return bucket;
}

}  // namespace cairn::testing
