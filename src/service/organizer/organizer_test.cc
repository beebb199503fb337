// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/organizer.h"

#include <gtest/gtest.h>

#include "memory/catalog/testing/block_probe.h"
#include "service/organizer/testing/organized_tiers.h"
#include "service/organizer/testing/tier_filler.h"

namespace cairn {
namespace {

using testing::kSlabs;
using testing::NothingIsAdmitted;

class OrganizerTest : public testing::OrganizedTiers {};

TEST(TierLimits, TinyTiersKeepAFewSlabs) {
  for (std::uint32_t slabs : {0u, 1u, 2u, 4u, 16u, 64u, 1000u}) {
    const TierLimits limits = limits_for(slabs, 5, 10);
    EXPECT_LE(limits.low_slabs, limits.high_slabs) << slabs;
    if (slabs > 0) {
      EXPECT_LT(limits.high_slabs, slabs) << slabs;
    }
  }
  EXPECT_EQ(limits_for(16, 5, 10).low_slabs, 4u);
  EXPECT_EQ(limits_for(10000, 5, 10).low_slabs, 500u);
  EXPECT_EQ(limits_for(10000, 5, 10).high_slabs, 1000u);
}

TEST_F(OrganizerTest, DoesNothingWhileThereIsRoom) {
  create(true);
  place(1, 5, false);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.dropped + made.demoted, 0u);
}

TEST_F(OrganizerTest, DropsTheOldestCleanBlocksWithoutATierBelow) {
  create(false);
  fill(false);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.dropped, limits_[0].high_slabs);
  EXPECT_EQ(journaled(0, MoveJournal::kDropped, PlacementReason::kDemoted), made.dropped);
  EXPECT_FALSE(made.is_short);
  EXPECT_EQ(find(0), BucketIndex::kNone);
  EXPECT_NE(find(kSlabs - 1), BucketIndex::kNone);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, NeverDropsDirtyBlocks) {
  create(false);
  fill(true);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.dropped, 0u);
  EXPECT_GT(made.dirty_in_the_way, 0u);
  EXPECT_TRUE(made.is_short);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
}

TEST_F(OrganizerTest, DemotesCleanBlocksWithTheirBytes) {
  create(true);
  fill(false);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.demoted, limits_[0].high_slabs);
  EXPECT_EQ(journaled(0, 1, PlacementReason::kDemoted), made.demoted);
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  EXPECT_EQ(tier_of(kSlabs - 1), TierId::kMemory);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, DirtyBlocksStayDirtyWhereTheyArrive) {
  create(true);
  fill(true);
  const std::uint64_t dirty_before = memory_.flusher_board().dirty_bytes.load();
  make_room(plain_);
  EXPECT_EQ(actor_.object(object_).dirty_blocks.load(), kSlabs);
  EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), dirty_before);
  const BlockDescriptor& block = memory_.block(find(0));
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  EXPECT_EQ(block.state(), BlockState::kDirty);
  EXPECT_EQ(block.dirty_pages(), 0xffff);
  std::uint32_t marked = 0;
  memory_.for_each_maybe_dirty([&](BucketIndex bucket) {
    if (memory_.block(bucket).dirty_pages() != 0) ++marked;
  });
  EXPECT_EQ(marked, kSlabs);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, CleanBlocksThatAreNotWorthItAreDropped) {
  create(true);
  fill(false);
  const RoomMade made = make_room_admitting_nothing();
  EXPECT_EQ(made.dropped, limits_[0].high_slabs);
  EXPECT_EQ(made.demoted, 0u);
  EXPECT_FALSE(made.is_short);
  EXPECT_EQ(journaled(0, MoveJournal::kDropped, PlacementReason::kNotAdmitted), made.dropped);
  EXPECT_EQ(memory_.pool(static_cast<TierId>(1)).free_slabs(), 2 * kSlabs);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, WhatTheStoreHasNotIsNeverTurnedAway) {
  create(true);
  fill(true);
  const RoomMade made = make_room_admitting_nothing();
  EXPECT_EQ(made.dropped, 0u);
  EXPECT_EQ(made.demoted, limits_[0].high_slabs);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, WhatSomebodyWantsToKeepIsNotTurnedAway) {
  const auto handle = [this](auto&& set) {
    ObjectHandling handling;
    set(handling);
    actor_.object(object_).set_handling(handling);
  };
  for (int what = 0; what < 4; ++what) {
    create(true);
    fill(false);
    for (std::uint32_t number = 0; number < kSlabs; ++number) {
      const BlockProbe block(memory_.block(find(number)));
      if (what == 0) block.set_reason(PlacementReason::kStaged);
      if (what == 1) block.set_unread(1);
    }
    if (what == 2) handle([](ObjectHandling& handling) { handling.priority = 7; });
    if (what == 3)
      handle([](ObjectHandling& handling) { handling.mode = BufferingMode::kScratch; });
    const RoomMade made = make_room_admitting_nothing();
    EXPECT_EQ(made.dropped, 0u) << what;
    EXPECT_EQ(made.demoted, limits_[0].high_slabs) << what;
  }
}

TEST_F(OrganizerTest, HeadroomDropsNothingThatIsNotWorthIt) {
  create(true);
  fill(false);
  const NothingIsAdmitted policy;
  Organizer organizer(memory_, *placement_policies()[0], policy, plain_, limits_);
  const RoomMade made = organizer.make_headroom(actor_, TierId::kMemory, kSlabs / 2);
  actor_.drop_leases();
  EXPECT_EQ(made.dropped, 0u);
  EXPECT_EQ(made.demoted, kSlabs / 2);
}

TEST_F(OrganizerTest, LeavesPinnedFilesWhereTheyAre) {
  create(true);
  fill(false);
  ObjectHandling handling;
  handling.pinned = true;
  actor_.object(object_).set_handling(handling);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.demoted + made.dropped, 0u);
  EXPECT_TRUE(made.is_short);
}

TEST_F(OrganizerTest, LeavesPinnedPartsWhereTheyAre) {
  create(true);
  fill(false);
  PartStatement statement;
  statement.first_block = 0;
  statement.last_block = 1;
  statement.property = PartProperty::kPinned;
  statement.value = 1;
  PartSet set;
  ASSERT_TRUE(set.add(memory_.rules().parts().add(statement)));
  ObjectHandling handling;
  handling.parts = memory_.rules().parts().intern(set);
  actor_.object(object_).set_handling(handling);
  const RoomMade made = make_room(plain_);
  EXPECT_GT(made.demoted, 0u);
  EXPECT_EQ(tier_of(0), TierId::kMemory) << "the oldest, and pinned";
  EXPECT_EQ(tier_of(1), TierId::kMemory);
  EXPECT_EQ(tier_of(2), static_cast<TierId>(1));
}

TEST_F(OrganizerTest, RaisesTheBlocksOfAFile) {
  create(true);
  fill(true);
  make_room(plain_);
  ASSERT_EQ(tier_of(0), static_cast<TierId>(1));
  const std::uint64_t dirty_before = memory_.flusher_board().dirty_bytes.load();
  Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], plain_,
                      limits_);
  const RisingFile file{object_, TierId::kMemory};
  const std::uint32_t raised = organizer.raise(actor_, std::span(&file, 1));
  actor_.drop_leases();
  EXPECT_EQ(raised, limits_[0].high_slabs - limits_[0].low_slabs) << "what is free above the mark";
  EXPECT_EQ(journaled(1, 0, PlacementReason::kHot), raised);
  EXPECT_EQ(memory_.flusher_board().dirty_bytes.load(), dirty_before);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, RaisesFromOneFileTierToAnotherAndLowersWhatIsColder) {
  create(true, true);
  fill(true);
  const auto fast = static_cast<TierId>(1);
  const auto slow = static_cast<TierId>(2);
  // All blocks go down to the slow tier, and come up into the one between.
  for (std::uint32_t number = 0; number < kSlabs; ++number) move(number, slow);
  for (std::uint32_t number = 0; number < kSlabs; ++number) EXPECT_EQ(tier_of(number), slow);
  Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], plain_,
                      limits_);
  const RisingFile file{object_, fast};
  EXPECT_EQ(organizer.raise(actor_, std::span(&file, 1)), kSlabs);
  actor_.drop_leases();
  for (std::uint32_t number = 0; number < kSlabs; ++number) {
    EXPECT_EQ(tier_of(number), fast);
    expect_content(number);
  }
  EXPECT_EQ(journaled(2, 1, PlacementReason::kHot), kSlabs);
  expect_nothing_leaks();

  // Now it belongs in the slow tier, and another file, which is there, in the fast one.
  ObjectHandling colder;
  colder.home = slow;
  actor_.object(object_).set_handling(colder);
  const ObjectIndex cold = object_;
  object_ = testing::make_object(actor_, file_key(1, 4, 5));
  fill(false);
  for (std::uint32_t number = 0; number < kSlabs; ++number) move(number, slow);
  const RisingFile hotter{object_, fast};
  EXPECT_EQ(organizer.raise(actor_, std::span(&hotter, 1)), kSlabs);
  actor_.drop_leases();
  EXPECT_EQ(tier_of(0), fast);
  const std::uint32_t room_before = 2 * kSlabs - kSlabs - limits_[1].low_slabs;
  EXPECT_EQ(journaled(1, 2, PlacementReason::kAboveHome), kSlabs - room_before);
  EXPECT_EQ(actor_.object(cold).blocks.load(), kSlabs) << "nothing of the colder file is lost";
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, WhatIsWantedMayBeMoreThanCanLeave) {
  create(true);
  // The tier below takes half of it, and what is dirty cannot be dropped.
  for (std::uint32_t number = 0; number < 3 * kSlabs / 2; ++number)
    testing::place_block(actor_, object_, static_cast<TierId>(1), 100 + number, 1);
  fill(true);
  Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], plain_,
                      limits_);
  const RoomMade made = organizer.make_room(actor_, TierId::kMemory, kSlabs);
  actor_.drop_leases();
  EXPECT_EQ(made.demoted, kSlabs / 2);
  EXPECT_NE(made.dirty_in_the_way, 0u);
  EXPECT_EQ(organizer.make_room(actor_, TierId::kMemory, kSlabs).demoted, 0u);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
}

TEST_F(OrganizerTest, WhatIsAboveItsHomeLeavesForThatReason) {
  create(true);
  fill(false);
  ObjectHandling handling;
  handling.home = static_cast<TierId>(1);
  actor_.object(object_).set_handling(handling);
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(journaled(0, 1, PlacementReason::kAboveHome), made.demoted);
  const BlockDescriptor& block = memory_.block(find(0));
  EXPECT_EQ(block.reason(), PlacementReason::kAboveHome);
  expect_nothing_leaks();
}

// The first half of the blocks is the older one.
void begin_two_runs(NodeMemory& memory) {
  memory.accounts().weights[1].store(100);
  memory.accounts().weights[2].store(100);
}

TEST_F(OrganizerTest, TakesFromTheRunAboveItsShare) {
  create(false);
  begin_two_runs(memory_);
  for (std::uint32_t number = 0; number < kSlabs; ++number)
    place(number, 1000 + number, false, AccountId{number < 4 ? std::uint8_t{1} : std::uint8_t{2}});
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.dropped, limits_[0].high_slabs);
  for (std::uint32_t number = 0; number < 4; ++number)
    EXPECT_NE(find(number), BucketIndex::kNone) << "old, but of the run that has less";
  EXPECT_EQ(memory_.accounts().tiers[0].used(AccountId{1}), 4u);
  EXPECT_EQ(memory_.accounts().tiers[0].used(AccountId{2}), 4u);
  EXPECT_EQ(memory_.accounts().tiers[0].share_floor.load(), limits_[0].low_slabs);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, LeavesARunWhatIsReservedForIt) {
  create(true);
  memory_.accounts().weights[1].store(100);
  memory_.accounts().tiers[0].reserve(AccountId{1}, 6);
  for (std::uint32_t number = 0; number < kSlabs; ++number)
    place(number, 1000 + number, number % 2 == 0,
          AccountId{number < 6 ? std::uint8_t{1} : std::uint8_t{0}});
  const RoomMade made = make_room(plain_);
  EXPECT_GT(made.demoted, 0u);
  EXPECT_FALSE(made.is_short);
  for (std::uint32_t number = 0; number < 6; ++number)
    EXPECT_EQ(tier_of(number), TierId::kMemory) << "oldest, and reserved for it";
  EXPECT_EQ(memory_.accounts().tiers[1].used(AccountId::kNobody), made.demoted);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, ARunFullOfDirtyDataDoesNotStopTheOthers) {
  create(false);
  begin_two_runs(memory_);
  for (std::uint32_t number = 0; number < kSlabs; ++number)
    place(number, 1000 + number, number >= 4,
          AccountId{number < 4 ? std::uint8_t{1} : std::uint8_t{2}});
  const RoomMade made = make_room(plain_);
  EXPECT_EQ(made.dropped, 4u) << "the clean ones, whose run has less";
  EXPECT_GT(made.dirty_in_the_way, 0u);
  const TierAccounts& accounts = memory_.accounts().tiers[0];
  EXPECT_EQ(accounts.grant(AccountId{1}, 4, 4), 4u) << "for itself";
  EXPECT_EQ(accounts.grant(AccountId{2}, 4, 4), 0u) << "and not for the other";
}

TEST_F(OrganizerTest, PassesOverBlocksInUse) {
  create(false);
  fill(false);
  LockedBlock busy(actor_.worker(), find(0));
  const RoomMade made = make_room(plain_);
  EXPECT_GE(made.dropped, limits_[0].high_slabs);
  EXPECT_NE(find(0), BucketIndex::kNone);
  busy.unlock();
  expect_nothing_leaks();
}

}  // namespace
}  // namespace cairn
