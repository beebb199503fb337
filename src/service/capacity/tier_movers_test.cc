// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/tier_movers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

#include "memory/tiers/testing/test_memory.h"
#include "policy/placement/policies.h"
#include "policy/replacement/policies.h"
#include "service/organizer/testing/tier_filler.h"

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
    memory_ = testing::make_memory(shape);
    actor_ = testing::make_actor(memory_);
    object_ = testing::make_object(actor_, file_key(1, 2, 3));
    for (unsigned tier = 0; tier < 3; ++tier) {
      limits_[tier] = limits_for(memory_.pool(static_cast<TierId>(tier)).slab_count(), 25, 50);
    }
  }

  void fill(TierId tier, std::uint32_t first_number) {
    for (std::uint32_t at = 0; at < kSlabs; ++at)
      testing::place_block(actor_, object_, tier, first_number + at, 1000 + at);
    actor_.drop_leases();
  }
  // Until nobody is at work any more and nothing leaves.
  RoomMade make_room(TierMovers& movers, const TierMovers::Wanted& wanted = {}) {
    RoomMade sum;
    for (;;) {
      const RoomMade made = movers.make_room(wanted);
      sum.dropped += made.dropped;
      sum.demoted += made.demoted;
      if (!made.is_going_on && made.dropped + made.demoted == 0) return sum;
    }
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
  const RoomMade made = make_room(movers);
  EXPECT_EQ(made.dropped, 0u) << "there is room below for everything";
  EXPECT_GE(made.demoted, limits_[0].high_slabs + limits_[1].high_slabs);
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

TEST_F(TierMoversTest, MakesTheRoomThatIsWantedByAllDevicesAtOnce) {
  fill(TierId::kMemory, 0);
  memory_.device_board().bandwidth[1].store(1e9);
  memory_.device_board().bandwidth[2].store(1e9);
  TierMovers movers(memory_, actor_.self, *placement_policies()[0], *replacement_policies()[0],
                    limits_);
  constexpr std::uint32_t kWanted = kSlabs - 2;
  EXPECT_EQ(make_room(movers, {kWanted}).demoted, kWanted);
  EXPECT_EQ(memory_.pool(TierId::kMemory).free_slabs(), kWanted);
  for (unsigned tier = 1; tier < 3; ++tier) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(tier));
    EXPECT_GE(pool.slab_count() - pool.free_slabs(), kWanted / 3) << "tier " << tier;
  }
}

TEST_F(TierMoversTest, EndsWithoutHavingBeenAsked) {
  TierMovers movers(memory_, actor_.self, *placement_policies()[0], *replacement_policies()[0],
                    limits_);
}

}  // namespace
}  // namespace cairn::node
