// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/move_batch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "base/clock.h"
#include "memory/tiers/page_seals.h"
#include "service/organizer/testing/organized_tiers.h"
#include "service/organizer/uring_writer.h"

namespace cairn {
namespace {

using testing::kSlabs;

class MoveBatchTest : public testing::OrganizedTiers {};

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

TEST_F(MoveBatchTest, WhatIsFetchedForLaterWaitsBelow) {
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

TEST_F(MoveBatchTest, WhatLeavesForAnotherReasonWasFetchedInVain) {
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

TEST_F(MoveBatchTest, ABlockThatBrokeInMemoryDoesNotLeaveIt) {
  create(true);
  const BucketIndex bucket = place(1, 5, false);
  {
    LockedBlock block(actor_.worker(), bucket);
    block.set_changed();
    seal_filled(memory_, block, kAllPages);
  }
  memory_.bytes(bucket)[5 * kPageBytes + 100] ^= std::byte{1};
  MoveBatch batch(memory_, plain_);
  ASSERT_TRUE(batch.add(actor_, bucket, TierId{1}, PlacementReason::kDemoted));
  EXPECT_EQ(batch.finish(actor_), 0u);
  EXPECT_EQ(tier_of(1), TierId::kMemory);
  EXPECT_EQ(memory_.block(bucket).valid_pages(), kAllPages & ~(1U << 5));
  EXPECT_EQ(memory_.failure_board().tiers[0].broken.load(), 1u);
  actor_.drop_leases();
}

TEST_F(MoveBatchTest, ChecksumsTravelWithTheBlock) {
  create(true);
  place(1, 5, false);
  actor_.drop_leases();
  UringWriter uring;
  MoveBatch batch(memory_, uring);
  ASSERT_TRUE(batch.add(actor_, find(1), TierId{1}, PlacementReason::kDemoted));
  ASSERT_EQ(batch.finish(actor_), 1u);
  const std::vector<std::byte> page(kPageBytes, std::byte{1});
  const std::uint64_t begin = memory_.pool(TierId{1}).offset_of_bucket(find(1));
  EXPECT_EQ(memory_.sums(TierId{1}).of(begin), page_sum(page.data()));
  expect_content(1);
  move(1, TierId::kMemory, PlacementReason::kPromoted);
  const BlockDescriptor& block = memory_.block(find(1));
  EXPECT_EQ(block.sealed_pages(block.sequence()), kAllPages);
  EXPECT_EQ(broken_pages(memory_, find(1), block.sequence()), 0);
  actor_.drop_leases();
}

TEST_F(MoveBatchTest, AFailedWriteLeavesTheBlockWhereItWas) {
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

TEST_F(MoveBatchTest, NothingMovesToATierThatIsOutOfService) {
  create(true, true);
  fill(true);
  memory_.failure_board().out_of_service.store(1U << 1);
  MoveBatch batch(memory_, plain_);
  EXPECT_FALSE(batch.add(actor_, find(0), static_cast<TierId>(1), PlacementReason::kDemoted));
  EXPECT_GT(make_room(plain_).demoted, 0u) << "there is another tier";
  EXPECT_EQ(memory_.pool(static_cast<TierId>(1)).free_slabs(), 2 * kSlabs);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
}

TEST_F(MoveBatchTest, ABlockWrittenMeanwhileStaysWhereItWas) {
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

TEST_F(MoveBatchTest, FewBlocksAreInFlightWhileProgramsReadTheDevice) {
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

// While the devices write one batch, the next is chosen.
TEST_F(MoveBatchTest, TwoBatchesTakeTurns) {
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

TEST_F(MoveBatchTest, NeighboursAreWrittenInOneOperation) {
  create(true);
  fill(false);
  std::size_t most = 0;
  CountingWriter counting(&most);
  EXPECT_EQ(make_room(counting).demoted, limits_[0].high_slabs);
  EXPECT_EQ(most, limits_[0].high_slabs);
  EXPECT_EQ(counting.writes(), 1u);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
}

// Two batches on their way up, each with a block that its device has lost.
TEST_F(MoveBatchTest, WhatBrokeBelowStaysThereWhileTheOthersComeUp) {
  create(true);
  fill(false);
  MoveBatch batch(memory_, plain_);
  for (std::uint32_t number = 0; number < kSlabs; ++number)
    ASSERT_TRUE(batch.add(actor_, find(number), TierId{1}, PlacementReason::kDemoted));
  ASSERT_EQ(batch.finish(actor_), kSlabs);
  actor_.drop_leases();
  constexpr std::uint32_t kHalf = kSlabs / 2;
  static_assert(kHalf >= MoveBatch::kBlocksCheckedApart);
  for (const std::uint32_t broken : {3U, kHalf + 5U}) {
    const TierPlace place = memory_.place_of(find(broken), 2 * kPageBytes, kPageBytes);
    const Tier::DevicePlace at = place.tier->on_device(place.extent);
    alignas(kPageBytes) std::array<std::byte, kPageBytes> other;
    other.fill(std::byte{0xEE});
    ASSERT_EQ(::pwrite(at.descriptor, other.data(), other.size(), static_cast<off_t>(at.offset)),
              static_cast<ssize_t>(other.size()));
  }
  std::uint32_t moved = 0;
  for (std::uint32_t number = 0; number < kSlabs; ++number) {
    ASSERT_TRUE(batch.add(actor_, find(number), TierId::kMemory, PlacementReason::kPromoted));
    if (number % kHalf == kHalf - 1) moved += batch.advance(actor_);
  }
  moved += batch.finish(actor_);
  EXPECT_EQ(moved, kSlabs - 2);
  for (std::uint32_t number = 0; number < kSlabs; ++number) {
    const bool is_broken = number == 3 || number == kHalf + 5;
    EXPECT_EQ(raw(tier_of(number)), is_broken ? 1U : 0U) << number;
    if (!is_broken) expect_content(number);
  }
}

}  // namespace
}  // namespace cairn
