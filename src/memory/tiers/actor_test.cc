// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/actor.h"

#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"

namespace cairn {
namespace {

TEST(Actor, WithoutItsMemoryItHasNoCopyOfABlock) {
  NodeMemory memory = testing::make_memory(testing::memory_only(4 * kBlockBytes));
  Actor actor = testing::make_actor(memory);
  ASSERT_NE(actor.bounce_blocks(), nullptr);
  actor.copy.object = ObjectIndex{3};
  actor.copy.count = 2;
  EXPECT_TRUE(actor.copy.has(ObjectIndex{3}, BlockNumber{1}));
  actor.drop_leases();
  EXPECT_FALSE(actor.copy.has(ObjectIndex{3}, BlockNumber{1}));
}

}  // namespace
}  // namespace cairn
