// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block_life.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <type_traits>
#include <utility>

#include "memory/catalog/testing/block_probe.h"
#include "memory/catalog/testing/small_catalog.h"

namespace cairn {
namespace {

// Misuse does not compile: no handle is copied, none becomes another by itself, and what needs the
// lock, or a block that nobody has claimed, cannot be had without.
static_assert(!std::is_copy_constructible_v<LockedBlock>);
static_assert(!std::is_copy_constructible_v<FreshBlock>);
static_assert(!std::is_copy_constructible_v<ClaimedBlock>);
static_assert(!std::is_copy_constructible_v<PinnedBlock>);
static_assert(!std::is_copy_constructible_v<WritableBlock>);
static_assert(!std::is_constructible_v<FreshBlock, LockedBlock>);
static_assert(!std::is_constructible_v<LockedBlock, FreshBlock>);
static_assert(!std::is_constructible_v<LockedBlock, UnclaimedBlock>);
static_assert(!std::is_constructible_v<UnclaimedBlock, const LockedBlock&>);
static_assert(!std::is_constructible_v<UnclaimedBlock, BlockWorker, BucketIndex>);
static_assert(!std::is_constructible_v<ClaimedBlock, BlockWorker, BucketIndex>);
static_assert(!std::is_constructible_v<WritableBlock, const LockedBlock&, std::uint16_t>);

class BlockLife : public testing::Test {
 protected:
  static constexpr auto kFile = ObjectIndex{3};
  static constexpr auto kBlock = BlockNumber{9};

  LockedBlock place(std::uint32_t bucket, std::uint16_t pages) {
    return tables_.place(bucket, kFile, kBlock, pages);
  }
  LockedBlock place_dirty(std::uint32_t bucket, std::uint16_t pages) {
    LockedBlock block = place(bucket, pages);
    WritableBlock(block, pages).commit();
    block.unlock();
    return LockedBlock(tables_.worker(1), BucketIndex{bucket});
  }
  void expect_counted(std::uint32_t blocks, std::uint32_t bucket) const {
    EXPECT_EQ(tables_.object(kFile).dirty_blocks.load(), blocks);
    EXPECT_EQ(tables_.dirty_bytes(), blocks * kBlockBytes);
    EXPECT_EQ(tables_.is_marked_dirty(bucket), blocks != 0);
  }

  SmallCatalog tables_;
};

TEST_F(BlockLife, GoesFromFreeToFreeAndIsCountedMeanwhile) {
  LockedBlock block;
  EXPECT_EQ(tables_.take(1, 1).publish(kFile, kBlock, PlacementReason::kWritten, &block),
            BucketIndex{1});
  const BlockDescriptor& descriptor = block.descriptor();
  EXPECT_EQ(descriptor.state(), BlockState::kFilling);
  EXPECT_EQ(tables_.object(kFile).blocks.load(), 1u);
  {
    WritableBlock writable(block, 0b0110);
    EXPECT_EQ(descriptor.valid_pages(), 0) << "no garbage is valid";
    expect_counted(1, 1);
    writable.commit();
  }
  EXPECT_EQ(descriptor.valid_pages(), 0b0110);
  EXPECT_EQ(descriptor.dirty_pages(), 0b0110);
  const std::uint32_t before = descriptor.sequence();
  block.unlock();
  EXPECT_NE(descriptor.sequence(), before);
  LockedBlock again(tables_.worker(2), BucketIndex{1});
  ClaimedBlock claim = std::move(again).begin_flush(0b0110);
  EXPECT_EQ(descriptor.state(), BlockState::kFlushing);
  EXPECT_FALSE(BlockDescriptor::is_locked(descriptor.word()));
  EXPECT_TRUE(std::move(claim).end_flush(true));
  EXPECT_EQ(descriptor.state(), BlockState::kClean);
  expect_counted(0, 1);
  LockedBlock last(tables_.worker(1), BucketIndex{1});
  const FreshBlock emptied = UnclaimedBlock(last).vacate();
  EXPECT_EQ(descriptor.state(), BlockState::kFree);
  EXPECT_EQ(descriptor.object_index(), ObjectIndex::kNone);
  EXPECT_EQ(tables_.object(kFile).blocks.load(), 0u);
  EXPECT_EQ(tables_.catalog().directory().find(kFile, kBlock), BucketIndex::kNone);
}

TEST_F(BlockLife, OnlyTheFirstOfTwoBucketsIsPublished) {
  place(1, 1).unlock();
  LockedBlock block;
  FreshBlock second = tables_.take(1, 2);
  EXPECT_EQ(second.publish(kFile, kBlock, PlacementReason::kRead, &block), BucketIndex{1});
  EXPECT_FALSE(block);
  EXPECT_EQ(second.descriptor().state(), BlockState::kFree);
  EXPECT_EQ(tables_.object(kFile).blocks.load(), 1u);
}

TEST_F(BlockLife, AWriteThatWasGivenUpLeavesWhatWasValidDirty) {
  LockedBlock block = place(1, 0b0001);
  {
    const WritableBlock lost(block, 0b0011);
  }
  EXPECT_EQ(block.descriptor().valid_pages(), 0b0001);
  EXPECT_EQ(block.descriptor().dirty_pages(), 0b0001);
  expect_counted(1, 1);
}

TEST_F(BlockLife, AWriteOfNewPagesThatWasGivenUpLeavesTheBlockClean) {
  LockedBlock block = place(1, 0b0001);
  {
    const WritableBlock lost(block, 0b0100);
  }
  EXPECT_EQ(block.descriptor().valid_pages(), 0b0001);
  EXPECT_EQ(block.descriptor().state(), BlockState::kClean);
  expect_counted(0, 1);
}

TEST_F(BlockLife, WhatIsDirtyIsSeenWithItsTime) {
  constexpr std::uint32_t kRounds = 200'000;
  Object& file = tables_.catalog().objects().at(kFile);
  std::atomic<std::uint32_t> round{0};
  std::uint32_t seen = 0;
  std::uint32_t timeless = 0;
  // As the flusher looks, who would store at once what has been dirty since the machine's start.
  std::thread flusher([&] {
    for (std::uint32_t before = 0; before < kRounds;) {
      before = round.load();
      if (file.dirty_blocks.load() == 0) continue;
      const std::uint32_t since_ms = file.dirty_since_ms.load();
      if (round.load() != before) continue;
      ++seen;
      if (since_ms == 0) ++timeless;
    }
  });
  LockedBlock block = place(1, 0b0001);
  while (round.fetch_add(1) < kRounds) {
    file.dirty_since_ms.store(0);
    const WritableBlock given_up(block, 0b0100);
  }
  flusher.join();
  EXPECT_EQ(timeless, 0U) << "of " << seen;
}

TEST_F(BlockLife, WhatIsWrittenDuringItsFlushStaysDirty) {
  ClaimedBlock claim = place_dirty(1, 0b0011).begin_flush(0b0011);
  {
    LockedBlock block(tables_.worker(2), BucketIndex{1});
    WritableBlock(block, 0b0001).commit();
    EXPECT_EQ(block.descriptor().state(), BlockState::kFlushing);
  }
  EXPECT_FALSE(std::move(claim).end_flush(true));
  EXPECT_EQ(tables_.block(1).dirty_pages(), 0b0011);
  EXPECT_EQ(tables_.block(1).state(), BlockState::kDirty);
  expect_counted(1, 1);
}

TEST_F(BlockLife, PagesThatAFlushLeftOutStayDirty) {
  ClaimedBlock claim = place_dirty(1, 0b0111).begin_flush(0b0011);
  EXPECT_TRUE(std::move(claim).end_flush(true));
  EXPECT_EQ(tables_.block(1).dirty_pages(), 0b0100);
  EXPECT_EQ(tables_.block(1).state(), BlockState::kDirty);
  expect_counted(1, 1);
}

TEST_F(BlockLife, CutsAwayWhatWasDirty) {
  LockedBlock block = place(1, 0b0111);
  WritableBlock(block, 0b0100).commit();
  UnclaimedBlock unclaimed(block);
  unclaimed.cut(0b0011);
  EXPECT_EQ(unclaimed.descriptor().valid_pages(), 0b0011);
  EXPECT_EQ(unclaimed.descriptor().state(), BlockState::kClean);
  expect_counted(0, 1);
}

TEST_F(BlockLife, TakesEverythingAlongWhenItMoves) {
  LockedBlock block = place_dirty(1, 0b0111);
  tables_.block(1).note_use(77, 4);
  UnclaimedBlock old(block);
  Relocated moved = std::move(old).relocate(tables_.take(1, 2), PlacementReason::kDemoted);
  const BlockDescriptor& now = moved.block.descriptor();
  EXPECT_EQ(now.valid_pages(), 0b0111);
  EXPECT_EQ(now.dirty_pages(), 0b0111);
  EXPECT_EQ(now.state(), BlockState::kDirty);
  EXPECT_EQ(now.recency_ms(), 77u);
  EXPECT_EQ(now.frequency(), 5u);
  EXPECT_EQ(now.reason(), PlacementReason::kDemoted);
  EXPECT_EQ(tables_.catalog().directory().find(kFile, kBlock), BucketIndex{2});
  EXPECT_EQ(moved.emptied.descriptor().state(), BlockState::kFree);
  expect_counted(1, 2);
  EXPECT_FALSE(tables_.is_marked_dirty(1));
  EXPECT_EQ(tables_.object(kFile).blocks.load(), 1u);
}

TEST_F(BlockLife, AClaimKeepsTheBlockWhereItIsUntilItsOwnerIsDead) {
  ClaimedBlock claim = place(1, 1).begin_move();
  LockedBlock block(tables_.worker(2), BucketIndex{1});
  EXPECT_FALSE(UnclaimedBlock(block));
  EXPECT_TRUE(block) << "the lock is where it was";
  tables_.kill(1);
  EXPECT_TRUE(UnclaimedBlock(block));
  EXPECT_FALSE(block);
  EXPECT_TRUE(tables_.block(1).release_dead_claim(tables_.catalog().owners()));
  EXPECT_FALSE(tables_.block(1).release_dead_claim(tables_.catalog().owners()));
  BlockProbe(tables_.block(1)).claim_as(Owner(1, 0));
  EXPECT_TRUE(std::move(claim).end_move());
}

TEST_F(BlockLife, AMoveOfWhatWasWrittenMeanwhileIsGivenUp) {
  ClaimedBlock claim = place_dirty(1, 1).begin_move();
  {
    LockedBlock block(tables_.worker(2), BucketIndex{1});
    WritableBlock(block, 1).commit();
  }
  EXPECT_FALSE(std::move(claim).end_move());
  EXPECT_FALSE(tables_.block(1).claimant());
  EXPECT_FALSE(BlockDescriptor::is_locked(tables_.block(1).word()));
}

TEST_F(BlockLife, APinnedBlockIsWrittenAndFlushedAndNeitherMovesNorGoes) {
  PinnedBlock first = place_dirty(1, 1).pin();
  PinnedBlock second = LockedBlock(tables_.worker(2), BucketIndex{1}).pin();
  EXPECT_EQ(tables_.block(1).pins(), 2u);
  {
    LockedBlock block(tables_.worker(3), BucketIndex{1});
    WritableBlock(block, 1).commit();
    EXPECT_FALSE(UnclaimedBlock(block));
  }
  ClaimedBlock flush = LockedBlock(tables_.worker(3), BucketIndex{1}).begin_flush(1);
  EXPECT_TRUE(std::move(flush).end_flush(true));
  EXPECT_EQ(tables_.block(1).state(), BlockState::kClean);
  first.unpin();
  LockedBlock block(tables_.worker(3), BucketIndex{1});
  EXPECT_FALSE(UnclaimedBlock(block)) << "one pin is left";
  second = PinnedBlock();
  EXPECT_TRUE(UnclaimedBlock(block));
}

TEST_F(BlockLife, AMoveEndsInNothingWhenTheBlockWasPinnedMeanwhile) {
  ClaimedBlock claim = place(1, 1).begin_move();
  const PinnedBlock pinned = LockedBlock(tables_.worker(2), BucketIndex{1}).pin();
  EXPECT_FALSE(std::move(claim).end_move());
  EXPECT_EQ(tables_.block(1).pins(), 1u);
}

TEST_F(BlockLife, ThereAreOnlySoManyPins) {
  place(1, 1).unlock();
  std::array<PinnedBlock, BlockDescriptor::kPinsMax> pins;
  for (PinnedBlock& pin : pins) {
    pin = LockedBlock(tables_.worker(1), BucketIndex{1}).pin();
    ASSERT_TRUE(pin);
  }
  LockedBlock block(tables_.worker(1), BucketIndex{1});
  EXPECT_FALSE(std::move(block).pin());
  EXPECT_TRUE(block) << "still locked";
  EXPECT_FALSE(block.is_claimed()) << "pins do not run over into the claimant";
}

TEST_F(BlockLife, WhoWaitsForTheLastPinIsWoken) {
  PinnedBlock pinned = place(1, 1).pin();
  std::thread waiter([&] {
    LockedBlock block(tables_.worker(2), BucketIndex{1});
    std::move(block).unlock_and_wait();
    EXPECT_EQ(tables_.block(1).pins(), 0u);
  });
  pinned.unpin();
  waiter.join();
}

TEST_F(BlockLife, TakesAwayPinsThatNobodyGivesBack) {
  place(1, 1).unlock();
  BlockProbe(tables_.block(1)).leave_a_pin();
  LockedBlock(tables_.worker(2), BucketIndex{1}).unlock_and_wait();
  EXPECT_EQ(tables_.block(1).pins(), 0u);
}

// The owner of a flush died between the last dirty page and the state, and then the audit counted.
TEST_F(BlockLife, CountsABlockAgainWhoseFlushDiedAsItEnded) {
  place_dirty(1, 1).unlock();
  const BlockProbe probe(tables_.block(1));
  probe.lock_as(Owner(1, 0));
  probe.claim_as(Owner(1, 0));
  probe.set_state(BlockState::kFlushing);
  probe.set_pages(1, 0);
  tables_.kill(1);
  LockedBlock block(tables_.worker(2), BucketIndex{1});
  EXPECT_EQ(block.descriptor().state(), BlockState::kClean);
  tables_.catalog().objects().at(kFile).dirty_blocks.store(0);
  WritableBlock(block, 1).commit();
  EXPECT_EQ(tables_.object(kFile).dirty_blocks.load(), 1u);
}

}  // namespace
}  // namespace cairn
