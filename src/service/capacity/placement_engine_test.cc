// SPDX-License-Identifier: Apache-2.0
// What the engine tells those who carry its plans out.
#include "service/capacity/placement_engine.h"

#include <gtest/gtest.h>

#include "memory/tiers/testing/test_memory.h"
#include "service/organizer/testing/tier_filler.h"

namespace cairn::node {
namespace {

constexpr std::uint32_t kMemorySlabs = 128;

class PlacementEngineTest : public ::testing::Test {
 protected:
  void SetUp() override {
    MemoryShape shape = testing::memory_only(kMemorySlabs * kBlockBytes);
    shape.tier_bytes[1] = shape.tier_bytes[2] = 2 * kMemorySlabs * kBlockBytes;
    memory_ = testing::make_memory(shape);
    actor_ = testing::make_actor(memory_);
    object_ = testing::make_object(actor_, file_key(1, 2, 3));
    std::vector<profiler::TierFigures> figures(3);
    for (unsigned tier = 0; tier < 3; ++tier) {
      figures[tier].write_bandwidth = 8e9 / (1U << (2 * tier));
      figures[tier].write_latency = 1e-5;
    }
    engine_.emplace(memory_, figures, nullptr);
  }
  void fill_memory() {
    for (std::uint32_t number = 0; number < kMemorySlabs; ++number)
      testing::place_block(actor_, object_, TierId::kMemory, number, 1000);
    actor_.drop_leases();
  }
  void empty_memory() {
    for (std::uint32_t number = 0; number < kMemorySlabs; ++number) {
      const BucketIndex bucket =
          memory_.directory().find(object_, static_cast<BlockNumber>(number));
      LockedBlock block(actor_.worker(), bucket);
      memory_.pool(TierId::kMemory).release(UnclaimedBlock(block).vacate());
    }
  }
  bool makes_room(unsigned policy) const {
    return (memory_.placement_board().makes_room.load() >> policy & 1) != 0;
  }

  NodeMemory memory_;
  Actor actor_;
  ObjectIndex object_{};
  std::optional<PlacementEngine> engine_;
};

TEST_F(PlacementEngineTest, TheDefaultRatherHasRoomMadeInMemoryThanPlacesBelow) {
  ASSERT_EQ(engine_->number_of("max-bandwidth").value(), 0);
  ASSERT_EQ(engine_->number_of("round-robin").value(), 1);
  EXPECT_FALSE(makes_room(0)) << "there is room";
  EXPECT_EQ(engine_->rooms_wanted()[0], 0u);
  fill_memory();
  engine_->refresh();
  EXPECT_TRUE(makes_room(0));
  EXPECT_FALSE(makes_room(1)) << "round-robin takes what there is";
  EXPECT_GE(engine_->rooms_wanted()[0], kMemorySlabs / 4);
  EXPECT_EQ(memory_.placement_board().plans[0].at(0), TierId::kMemory);
  empty_memory();
  engine_->refresh();
  EXPECT_FALSE(makes_room(0));
  EXPECT_EQ(engine_->rooms_wanted()[0], 0u);
}

TEST_F(PlacementEngineTest, ClientsAndMoversAreToldWhatWasMeasured) {
  EXPECT_EQ(memory_.device_board().bandwidth[2].load(), 5e8);
  profiler::TierFigures figures;
  figures.write_bandwidth = 3e8;
  engine_->set_figures(2, figures);
  EXPECT_EQ(memory_.device_board().bandwidth[2].load(), 3e8);
}

TEST_F(PlacementEngineTest, ATierThatIsOutOfServiceHasNoPlaceInAPlan) {
  ASSERT_EQ(engine_->number_of("round-robin").value(), 0);
  const PublishedPlan& plan = memory_.placement_board().plans[0];
  const auto elements = [&plan](unsigned tier) {
    unsigned count = 0;
    for (unsigned at = 0; at < PublishedPlan::kElements; ++at) count += raw(plan.at(at)) == tier;
    return count;
  };
  ASSERT_GT(elements(1), 0u);
  memory_.failure_board().out_of_service.store(1U << 1);
  engine_->refresh();
  EXPECT_EQ(elements(1), 0u);
  EXPECT_GT(elements(2), 0u);
}

}  // namespace
}  // namespace cairn::node
