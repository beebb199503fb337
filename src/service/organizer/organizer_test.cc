// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/organizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "memory/catalog/testing/block_probe.h"
#include "memory/tiers/testing/test_memory.h"
#include "policy/placement/policies.h"
#include "policy/replacement/policies.h"
#include "service/organizer/testing/tier_filler.h"

namespace cairn {
namespace {

constexpr std::uint32_t kSlabs = 16;

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

class FailingWriter final : public BatchWriter {
 public:
  void start(std::span<BatchWrite> writes) override {
    for (BatchWrite& write : writes) write.result = -5;
  }
};

// Runs `meddle` between the write of a batch and its commit.
class MeddlingWriter final : public BatchWriter {
 public:
  template <typename Meddle>
  explicit MeddlingWriter(Meddle meddle) : meddle_(std::move(meddle)) {}
  void start(std::span<BatchWrite> writes) override {
    plain_.start(writes);
    meddle_();
  }

 private:
  PlainBatchWriter plain_;
  std::function<void()> meddle_;
};

// How many blocks were in flight at most, and in how many operations.
class CountingWriter final : public BatchWriter {
 public:
  explicit CountingWriter(std::size_t* most) : most_(most) {}
  void start(std::span<BatchWrite> writes) override {
    std::size_t blocks = 0;
    for (const BatchWrite& write : writes) blocks += write.place.extent.length / kBlockBytes;
    *most_ = std::max(*most_, blocks);
    writes_ += writes.size();
    plain_.start(writes);
  }
  std::size_t writes() const { return writes_; }

 private:
  PlainBatchWriter plain_;
  std::size_t* most_;
  std::size_t writes_ = 0;
};

// Oldest first, and nothing is worth a place below.
class NothingIsAdmitted final : public ReplacementPolicy {
 public:
  const char* name() const override { return "nothing-is-admitted"; }
  std::size_t choose(std::span<BlockView> candidates,
                     const ReplacementRequest& request) const override {
    return replacement_policies()[0]->choose(candidates, request);
  }
  bool admits(const BlockView&, TierId, TierId) const override { return false; }
};

class OrganizerTest : public ::testing::Test {
 protected:
  void create(bool with_file_tier, bool with_slow_tier = false) {
    MemoryShape shape;
    shape.tier_bytes[0] = kSlabs * kBlockBytes;
    shape.tier_bytes[1] = with_file_tier ? 2 * kSlabs * kBlockBytes : 0;
    shape.tier_bytes[2] = with_slow_tier ? 4 * kSlabs * kBlockBytes : 0;
    shape.clients_max = 8;
    shape.objects_max = 64;
    memory_ = testing::make_memory(shape);
    actor_ = testing::make_actor(memory_);
    object_ = testing::make_object(actor_, file_key(1, 2, 3));
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      limits_[tier] = limits_for(memory_.pool(static_cast<TierId>(tier)).slab_count(), 25, 50);
    }
  }

  // A block of the RAM tier filled with its own number, used `age` ago.
  BucketIndex place(std::uint32_t number, std::uint32_t recency_ms, bool dirty,
                    AccountId account = AccountId::kNobody) {
    const BucketIndex bucket =
        testing::place_block(actor_, object_, TierId::kMemory, number, recency_ms, account);
    std::memset(memory_.bytes(bucket), static_cast<int>(number), kBlockBytes);
    if (dirty) LockedBlock(actor_.worker(), bucket).turn_dirty();
    return bucket;
  }

  void fill(bool dirty) {
    for (std::uint32_t number = 0; number < kSlabs; ++number) place(number, 1000 + number, dirty);
    actor_.object(object_).extend_to(kSlabs * kBlockBytes);
    actor_.drop_leases();
  }

  BucketIndex find(std::uint32_t number) const {
    return memory_.directory().find(object_, static_cast<BlockNumber>(number));
  }
  void move(std::uint32_t number, TierId target,
            PlacementReason reason = PlacementReason::kDemoted) {
    MoveBatch batch(memory_, plain_);
    EXPECT_TRUE(batch.add(actor_, find(number), target, reason));
    EXPECT_EQ(batch.finish(actor_), 1u);
    actor_.drop_leases();
  }
  TierId tier_of(std::uint32_t number) const { return memory_.tier_of(find(number)); }

  void expect_content(std::uint32_t number) const {
    const BucketIndex bucket = find(number);
    ASSERT_NE(bucket, BucketIndex::kNone);
    std::vector<std::byte> expected(kBlockBytes, static_cast<std::byte>(number));
    auto* read = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlockBytes));
    EXPECT_EQ(memory_.place_of(bucket, 0, kBlockBytes).read(read), 0);
    EXPECT_EQ(std::memcmp(read, expected.data(), kBlockBytes), 0) << number;
    std::free(read);
  }

  RoomMade make_room(BatchWriter& writer) {
    Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], writer,
                        limits_);
    const RoomMade made = organizer.make_room(actor_, TierId::kMemory);
    actor_.drop_leases();
    return made;
  }

  RoomMade make_room_admitting_nothing() {
    const NothingIsAdmitted policy;
    Organizer organizer(memory_, *placement_policies()[0], policy, plain_, limits_);
    const RoomMade made = organizer.make_room(actor_, TierId::kMemory);
    actor_.drop_leases();
    return made;
  }

  std::uint64_t journaled(unsigned from, unsigned to, PlacementReason reason) const {
    const MoveJournal::Cell& cell = memory_.journal().at(from, to, reason);
    EXPECT_EQ(cell.bytes.load(), cell.blocks.load() * kBlockBytes);
    return cell.blocks.load();
  }

  void expect_nothing_leaks() {
    for (unsigned index = 0; index < memory_.tier_count(); ++index) {
      const BucketPool& pool = memory_.pool(static_cast<TierId>(index));
      EXPECT_EQ(pool.free_slabs(), pool.count_free_slabs());
      EXPECT_EQ(pool.leased_slabs(), 0u);
    }
    std::uint32_t resident = 0;
    for (std::uint32_t number = 0; number < kSlabs; ++number) {
      if (find(number) != BucketIndex::kNone) ++resident;
    }
    EXPECT_EQ(actor_.object(object_).blocks.load(), resident);
  }

  NodeMemory memory_;
  Actor actor_;
  ObjectIndex object_{};
  std::array<TierLimits, kTiersMax> limits_{};
  PlainBatchWriter plain_;
};

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

TEST_F(OrganizerTest, WhatIsFetchedForLaterWaitsBelow) {
  create(true);
  constexpr std::uint8_t kPredictor = 3;
  const FetchJournal& fetches = memory_.fetches();
  const FetchJournal::Line& line = fetches.of(kPredictor);
  BlockProbe(memory_.block(place(1, 5, false))).set_unread(kPredictor);
  actor_.drop_leases();
  fetches.note_fetched(kPredictor, kBlockBytes);
  move(1, TierId{1}, PlacementReason::kFetched);
  EXPECT_EQ(fetches.below_bytes(), kBlockBytes);
  EXPECT_TRUE(memory_.block(find(1)).is_unread());
  move(1, TierId::kMemory, PlacementReason::kFetched);
  EXPECT_EQ(fetches.below_bytes(), 0u);
  EXPECT_EQ(line.fetched_bytes.load(), kBlockBytes) << "it is the same fetch";
  move(1, TierId{1}, PlacementReason::kFetched);
  EXPECT_TRUE(memory_.note_used(find(1), false));
  EXPECT_FALSE(memory_.note_used(find(1), false)) << "only the first use counts";
  EXPECT_EQ(fetches.below_bytes(), 0u);
  EXPECT_EQ(line.used_bytes.load(), kBlockBytes);
  EXPECT_EQ(line.evicted_unused_bytes.load(), 0u);
  EXPECT_EQ(fetches.unused_bytes(), 0u);
}

TEST_F(OrganizerTest, WhatLeavesForAnotherReasonWasFetchedInVain) {
  create(true, true);
  constexpr std::uint8_t kPredictor = 3;
  const FetchJournal& fetches = memory_.fetches();
  BlockProbe(memory_.block(place(1, 5, false))).set_unread(kPredictor);
  actor_.drop_leases();
  fetches.note_fetched(kPredictor, kBlockBytes);
  move(1, TierId{1}, PlacementReason::kFetched);
  move(1, TierId{2});
  EXPECT_FALSE(memory_.block(find(1)).is_unread());
  EXPECT_EQ(fetches.of(kPredictor).evicted_unused_bytes.load(), kBlockBytes);
  EXPECT_EQ(fetches.below_bytes(), 0u);
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

TEST_F(OrganizerTest, AFailedWriteLeavesTheBlockWhereItWas) {
  create(true);
  fill(true);
  FailingWriter failing;
  const RoomMade made = make_room(failing);
  EXPECT_EQ(made.demoted, 0u);
  for (std::uint32_t number = 0; number < kSlabs; ++number) {
    EXPECT_EQ(tier_of(number), TierId::kMemory);
    EXPECT_FALSE(memory_.block(find(number)).claimant());
    expect_content(number);
  }
  EXPECT_EQ(memory_.pool(static_cast<TierId>(1)).free_slabs(), 2 * kSlabs);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, ABlockWrittenMeanwhileStaysWhereItWas) {
  create(true);
  fill(false);
  bool meddled = false;
  MeddlingWriter writer([&] {
    if (meddled) return;
    meddled = true;
    LockedBlock block(actor_.worker(), find(0));
    std::memset(memory_.bytes(find(0)), 0, kBlockBytes);
    block.set_changed();
  });
  Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], writer,
                      limits_);
  organizer.make_room(actor_, TierId::kMemory);
  actor_.drop_leases();
  expect_content(0);
  expect_nothing_leaks();
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

TEST_F(OrganizerTest, FewBlocksAreInFlightWhileProgramsReadTheDevice) {
  create(true);
  fill(false);
  const auto target = static_cast<TierId>(1);
  const auto blocks_until_full = [&] {
    MoveBatch batch(memory_, plain_);
    std::uint32_t added = 0;
    while (!batch.is_full() && added < kSlabs &&
           batch.add(actor_, find(added), target, PlacementReason::kDemoted)) {
      ++added;
    }
    EXPECT_EQ(batch.finish(actor_), added);
    actor_.drop_leases();
    return added;
  };
  memory_.device_board().note_read(target, monotonic_coarse_ms());
  EXPECT_EQ(blocks_until_full(), MoveBatch::kBlocksBesideReads);
  memory_.device_board().note_read(target, monotonic_coarse_ms() - 1000);
  MoveBatch batch(memory_, plain_);
  for (std::uint32_t number = kSlabs / 2; number < kSlabs; ++number)
    EXPECT_TRUE(batch.add(actor_, find(number), target, PlacementReason::kDemoted));
  EXPECT_FALSE(batch.is_full());
  EXPECT_EQ(batch.finish(actor_), kSlabs / 2);
  actor_.drop_leases();
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

// While the devices write one batch, the next is chosen.
TEST_F(OrganizerTest, TwoBatchesTakeTurns) {
  create(true);
  fill(false);
  const auto target = static_cast<TierId>(1);
  MoveBatch batch(memory_, plain_);
  for (std::uint32_t number = 0; number < 4; ++number)
    EXPECT_TRUE(batch.add(actor_, find(number), target, PlacementReason::kDemoted));
  EXPECT_EQ(batch.advance(actor_), 0u) << "on their way";
  EXPECT_EQ(tier_of(0), TierId::kMemory);
  EXPECT_FALSE(batch.add(actor_, find(0), target, PlacementReason::kDemoted)) << "already";
  for (std::uint32_t number = 4; number < 6; ++number)
    EXPECT_TRUE(batch.add(actor_, find(number), target, PlacementReason::kDemoted));
  EXPECT_EQ(batch.size(), 6u);
  EXPECT_EQ(batch.blocks_to(target), 2u);
  EXPECT_EQ(batch.advance(actor_), 4u);
  EXPECT_EQ(tier_of(0), target);
  EXPECT_EQ(tier_of(4), TierId::kMemory);
  EXPECT_EQ(batch.finish(actor_), 2u);
  EXPECT_EQ(batch.size(), 0u);
  actor_.drop_leases();
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, NeighboursAreWrittenInOneOperation) {
  create(true);
  fill(false);
  std::size_t most = 0;
  CountingWriter counting(&most);
  EXPECT_EQ(make_room(counting).demoted, limits_[0].high_slabs);
  EXPECT_EQ(most, limits_[0].high_slabs);
  EXPECT_EQ(counting.writes(), 1u);
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
