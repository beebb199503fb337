// SPDX-License-Identifier: Apache-2.0
#include "node/tier_movers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "placement/policies.h"
#include "replacement/policies.h"
#include "tiers/testing/test_memory.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kSlabs = 32;

class TierMoversTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MemoryShape shape;
    // The slowest has room for all that leaves the others.
    for (unsigned tier = 0; tier < 3; ++tier)
      shape.tier_bytes[tier] = (tier == 2 ? 4 : 1) * kSlabs * kBlockBytes;
    shape.clients_max = 8;
    shape.objects_max = 64;
    memory_ = testing::make_memory(shape, "movers-test");
    actor_ = testing::make_actor(memory_);
    object_ = testing::make_object(actor_, FileKey{1, 2, 3});
    for (unsigned tier = 0; tier < 3; ++tier) {
      limits_[tier] = limits_for(memory_.pool(static_cast<TierId>(tier)).slab_count(), 25, 50);
    }
  }

  void fill(TierId tier, std::uint32_t first_number) {
    Lease::Fresh fresh;
    for (std::uint32_t at = 0; at < kSlabs; ++at) {
      const BucketIndex bucket = actor_.leases[raw(tier)].take(
          memory_.pool(tier), SizeClass::k64KiB, actor_.self, memory_.owners(), 1, &fresh);
      ASSERT_NE(bucket, BucketIndex::kNone);
      BlockDescriptor& block = memory_.block(bucket);
      block.set_identity(object_, static_cast<BlockNumber>(first_number + at));
      block.enter(BlockState::kFilling);
      block.valid_pages.store(0xffff);
      block.recency_ms.store(1000 + at);
      memory_.directory().publish(bucket, actor_.self, memory_.owners());
      actor_.object(object_).blocks.fetch_add(1);
      block.enter(BlockState::kClean);
      actor_.unlock(block, true);
    }
    actor_.drop_leases();
  }

  NodeMemory memory_;
  Actor actor_;
  ObjectIndex object_{};
  std::array<TierLimits, kTiersMax> limits_{};
};

TEST_F(TierMoversTest, MakesRoomInAllTiersAndDropsNothing) {
  fill(TierId::kMemory, 0);
  fill(static_cast<TierId>(1), kSlabs);
  TierMovers movers(memory_, actor_.self, *placement_policies()[0], *replacement_policies()[0],
                    limits_);
  // What leaves RAM takes the room that was made below it, so that a second call may be needed.
  std::uint32_t dropped = 0;
  std::uint32_t moved = 0;
  for (int call = 0; call < 4; ++call) {
    const RoomMade made = movers.make_room();
    dropped += made.dropped;
    moved += made.demoted;
  }
  EXPECT_EQ(dropped, 0u) << "there is room below for everything";
  EXPECT_GE(moved, limits_[0].high_slabs + limits_[1].high_slabs);
  EXPECT_GE(memory_.pool(TierId::kMemory).free_slabs(), limits_[0].high_slabs);
  EXPECT_GE(memory_.pool(static_cast<TierId>(1)).free_slabs(), limits_[1].low_slabs);
  EXPECT_EQ(actor_.object(object_).blocks.load(), 2 * kSlabs);
  for (std::uint32_t number = 0; number < 2 * kSlabs; ++number) {
    EXPECT_NE(memory_.directory().find(object_, static_cast<BlockNumber>(number)),
              BucketIndex::kNone)
        << number;
  }
  EXPECT_EQ(movers.make_room().demoted, 0u) << "there is room now";
}

TEST_F(TierMoversTest, EndsWithoutHavingBeenAsked) {
  TierMovers movers(memory_, actor_.self, *placement_policies()[0], *replacement_policies()[0],
                    limits_);
}

}  // namespace
}  // namespace cairn::node
