// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/bucket_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "memory/pool/lease.h"

namespace cairn {
namespace {

class BucketPoolTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kSlabs = 130;  // not a multiple of a hint word
  void SetUp() override {
    BucketPool::Words words{};
    words.slabs = slabs_.get();
    words.free_hint = free_hint_.get();
    words.partial_hint[0] = partial_[0].get();
    words.partial_hint[1] = partial_[1].get();
    words.free_slabs = &free_slabs_;
    words.accounts = accounts_.get();
    pool_ = BucketPool(words, BucketPool::Shape{kSlabs, kPagesPerBlock, 1});
    pool_.format();
  }
  BucketIndex take(Lease& lease, SizeClass size_class, Owner self) {
    Lease::Fresh fresh;
    FreshBlock block = lease.take(pool_, {size_class}, worker(self), &fresh);
    // In use: what a publisher does, without a directory.
    return block ? block.bucket() : BucketIndex::kNone;
  }
  void release(BucketIndex bucket, Owner self) {
    pool_.release(FreshBlock::lock(worker(self), bucket));
  }
  BlockWorker worker(Owner self) const { return BlockWorker{&catalog_, self}; }

  std::unique_ptr<std::atomic<std::uint32_t>[]> generations_{new std::atomic<std::uint32_t>[16]()};
  OwnerTable owners_{generations_.get(), 16};
  std::unique_ptr<std::atomic<std::uint64_t>[]> slabs_{new std::atomic<std::uint64_t>[kSlabs]()};
  std::unique_ptr<std::atomic<std::uint64_t>[]> free_hint_{new std::atomic<std::uint64_t>[8]()};
  std::unique_ptr<std::atomic<std::uint64_t>[]> partial_[2] = {
      std::unique_ptr<std::atomic<std::uint64_t>[]>(new std::atomic<std::uint64_t>[8]()),
      std::unique_ptr<std::atomic<std::uint64_t>[]>(new std::atomic<std::uint64_t>[ 8 ]())};
  std::atomic<std::uint32_t> free_slabs_{0};
  std::unique_ptr<TierAccounts> accounts_{new TierAccounts()};
  std::unique_ptr<BlockDescriptor[]> descriptors_{new BlockDescriptor[kSlabs * kPagesPerBlock + 1]};
  BlockCatalog catalog_{owners_, ObjectTable(),
                        BlockDirectory(HashLines(), descriptors_.get(), kSlabs* kPagesPerBlock + 1),
                        DirtyBlocks()};
  BucketPool pool_;
};

// A client can write the hints. A slab behind the last would have its bytes behind the tier's.
TEST_F(BucketPoolTest, HintsBehindTheLastSlabGiveOutNothing) {
  const auto spoil = [this] {
    for (unsigned word = 0; word < 8; ++word) free_hint_[word].store(~std::uint64_t{0});
    for (unsigned word = 0; word < 8; ++word) partial_[0][word].store(~std::uint64_t{0});
  };
  const Owner self = owners_.current(1);
  Lease lease;
  std::vector<BucketIndex> taken;
  for (;;) {
    spoil();
    const BucketIndex bucket = take(lease, SizeClass::k4KiB, self);
    if (bucket == BucketIndex::kNone) break;
    ASSERT_TRUE(pool_.contains(bucket));
    taken.push_back(bucket);
  }
  EXPECT_EQ(taken.size(), kSlabs * kPagesPerBlock);
  for (const BucketIndex bucket : taken) release(bucket, self);
  lease.drop(pool_);
  spoil();
  std::array<std::uint32_t, kSlabs + 64> slabs{};
  const unsigned leased = pool_.lease_whole(self, slabs);
  EXPECT_LE(leased, kSlabs);
  for (unsigned at = 0; at < leased; ++at) EXPECT_LT(slabs[at], kSlabs);
}

TEST_F(BucketPoolTest, GivesOutEveryBucketOnceAndTakesAllBack) {
  for (const SizeClass size_class : {SizeClass::k4KiB, SizeClass::k16KiB, SizeClass::k64KiB}) {
    const Owner self = owners_.current(1);
    Lease lease;
    std::set<std::uint32_t> taken;
    for (;;) {
      const BucketIndex bucket = take(lease, size_class, self);
      if (bucket == BucketIndex::kNone) break;
      EXPECT_TRUE(taken.insert(raw(bucket)).second) << "a bucket was given out twice";
      EXPECT_EQ(pool_.offset_of_bucket(bucket) % bytes_in(size_class), 0u);
    }
    EXPECT_EQ(taken.size(), kSlabs * kPagesPerBlock / pages_in(size_class));
    EXPECT_EQ(pool_.free_slabs(), 0u);
    for (const std::uint32_t bucket : taken) release(static_cast<BucketIndex>(bucket), self);
    lease.drop(pool_);
    EXPECT_EQ(pool_.free_slabs(), kSlabs) << "free + reserved + used == capacity";
    EXPECT_EQ(pool_.leased_slabs(), 0u);
  }
}

TEST_F(BucketPoolTest, PartlyFreeSlabsServeTheirClassAgain) {
  const Owner self = owners_.current(1);
  Lease lease;
  std::vector<BucketIndex> all;
  for (unsigned i = 0; i < kPagesPerBlock; ++i) all.push_back(take(lease, SizeClass::k4KiB, self));
  lease.drop(pool_);
  release(all[3], self);
  Lease other;
  EXPECT_EQ(raw(take(other, SizeClass::k4KiB, self)), raw(all[3]));
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 1);
}

TEST_F(BucketPoolTest, TheLeasesOfTheDeadComeBack) {
  const Owner victim = owners_.current(2);
  Lease lease;
  const BucketIndex used = take(lease, SizeClass::k4KiB, victim);
  ASSERT_NE(take(lease, SizeClass::k64KiB, victim), BucketIndex::kNone);
  EXPECT_GT(pool_.leased_slabs(), 0u);
  owners_.advance(2);
  EXPECT_GT(pool_.reclaim_leases(victim), 0u);
  EXPECT_EQ(pool_.leased_slabs(), 0u);
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 2) << "buckets in use stay in use";
  release(used, owners_.current(1));
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 1);
}

TEST_F(BucketPoolTest, WholeSlabsAreLeasedLowestFirstAndCountedAtOnce) {
  const Owner self = owners_.current(1);
  std::vector<std::uint32_t> first(70);
  ASSERT_EQ(pool_.lease_whole(self, first), 70u);
  for (std::uint32_t slab = 0; slab < 70; ++slab) EXPECT_EQ(first[slab], slab);
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 70);
  EXPECT_EQ(pool_.leased_slabs(), 70u);
  pool_.give_back(SlabIndex{3}, self);
  pool_.give_back(SlabIndex{66}, self);
  std::vector<std::uint32_t> second(kSlabs);
  ASSERT_EQ(pool_.lease_whole(self, second), kSlabs - 68) << "what is left, no more";
  EXPECT_EQ(second[0], 3u);
  EXPECT_EQ(second[1], 66u);
  EXPECT_EQ(pool_.free_slabs(), 0u);
  EXPECT_EQ(pool_.lease_whole(self, second), 0u);
  owners_.advance(1);
  EXPECT_EQ(pool_.reclaim_dead_leases(owners_), kSlabs);
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

// Words of slabs that different owners write lie on different cache lines as long as there are any.
TEST_F(BucketPoolTest, OwnersThatTakeSlabsOneByOneKeepApart) {
  constexpr std::uint32_t kTogether = BucketPool::kSlabsTogether;
  std::array<std::uint32_t, 2> last = {BucketPool::kNoSlab, BucketPool::kNoSlab};
  std::array<std::set<std::uint32_t>, 2> lines;
  for (int round = 0; round < 32; ++round) {
    for (std::uint16_t owner = 0; owner < 2; ++owner) {
      std::uint32_t slab = 0;
      const Owner self = owners_.current(static_cast<std::uint16_t>(owner + 1));
      ASSERT_EQ(pool_.lease_whole(self, std::span(&slab, 1), AccountId::kNobody, last[owner]), 1u);
      if (slab % kTogether != 0) {
        EXPECT_EQ(slab, last[owner] + 1) << "neighbours stay together";
      }
      last[owner] = slab;
      lines[owner].insert(slab / kTogether);
    }
  }
  for (const std::uint32_t line : lines[0]) EXPECT_EQ(lines[1].count(line), 0u);
  EXPECT_EQ(lines[0].size(), 32 / kTogether);
  // When no line is free as a whole, what is left is taken.
  std::uint32_t left = kSlabs - 64;
  std::uint32_t slab = 0;
  const Owner self = owners_.current(3);
  while (pool_.lease_whole(self, std::span(&slab, 1)) == 1) --left;
  EXPECT_EQ(left, 0u);
}

TEST_F(BucketPoolTest, AStaleHintGivesNoSlabTwice) {
  const Owner self = owners_.current(1);
  std::vector<std::uint32_t> slabs(2);
  ASSERT_EQ(pool_.lease_whole(self, slabs), 2u);
  free_hint_[0].fetch_or(3);  // as a death leaves it
  ASSERT_EQ(pool_.lease_whole(owners_.current(2), slabs), 2u);
  EXPECT_EQ(slabs[0], 2u);
  EXPECT_EQ(slabs[1], 3u);
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 4);
}

TEST_F(BucketPoolTest, ATakenSlabIsSharedAndComesBackWhenItsBucketIsReleased) {
  const Owner self = owners_.current(1);
  std::uint32_t slab = 0;
  ASSERT_EQ(pool_.lease_whole(self, std::span(&slab, 1)), 1u);
  FreshBlock block = pool_.take_whole(SlabIndex{slab}, worker(self));
  ASSERT_TRUE(block);
  const BucketIndex bucket = block.bucket();
  EXPECT_TRUE(pool_.is_taken(bucket));
  EXPECT_EQ(pool_.leased_slabs(), 0u) << "nothing is left for the sweep to give back";
  EXPECT_EQ(BlockDescriptor::owner_in(descriptors_[raw(bucket)].word()), self);
  pool_.release(std::move(block));
  EXPECT_FALSE(pool_.is_taken(bucket));
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

TEST_F(BucketPoolTest, AReleasedSlabStaysInStockForItsReleaser) {
  const Owner self = owners_.current(1);
  Lease lease;
  Lease::Fresh fresh;
  const auto take_one = [&](unsigned wanted) {
    return lease.take(pool_, {SizeClass::k64KiB, wanted}, worker(self), &fresh);
  };
  FreshBlock first = take_one(2);
  FreshBlock second = take_one(1);
  FreshBlock third = take_one(2);
  const BucketIndex again = third.bucket();
  lease.release(pool_, std::move(third), self);
  third = take_one(2);
  EXPECT_EQ(third.bucket(), again);
  EXPECT_EQ(fresh.count, 0u) << "from the stock";
  const BucketIndex first_bucket = first.bucket();
  const BucketIndex second_bucket = second.bucket();
  // The stock has one slab left of the two that were leased: there is room for one.
  lease.release(pool_, std::move(second), self);
  lease.release(pool_, std::move(first), self);
  EXPECT_FALSE(pool_.is_taken(first_bucket));
  EXPECT_FALSE(pool_.is_taken(second_bucket));
  EXPECT_EQ(pool_.leased_slabs(), 2u);
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 3) << "first is the pool's again";
  const BlockDescriptor& kept = descriptors_[raw(second_bucket)];
  EXPECT_FALSE(BlockDescriptor::is_locked(kept.word()));
  EXPECT_EQ(kept.object_index(), ObjectIndex::kNone);
  lease.release(pool_, std::move(third), self);
  lease.drop(pool_);
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

TEST_F(BucketPoolTest, WhatWasKeptByTheDeadComesBack) {
  const Owner victim = owners_.current(2);
  Lease lease;
  Lease::Fresh fresh;
  lease.release(pool_, lease.take(pool_, {SizeClass::k64KiB}, worker(victim), &fresh), victim);
  EXPECT_EQ(pool_.leased_slabs(), 1u);
  owners_.advance(2);
  EXPECT_EQ(pool_.reclaim_dead_leases(owners_), 1u);
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

TEST_F(BucketPoolTest, CountsSlabsForTheAccountThatTookThem) {
  constexpr auto kRun = AccountId{3};
  const Owner self = owners_.current(1);
  Lease lease;
  Lease::Fresh fresh;
  FreshBlock whole = lease.take(pool_, {SizeClass::k64KiB, 2, kRun}, worker(self), &fresh);
  FreshBlock small = lease.take(pool_, {SizeClass::k4KiB, 1, kRun}, worker(self), &fresh);
  EXPECT_EQ(accounts_->used(kRun), 3u) << "two of the largest class, one carved";
  EXPECT_EQ(pool_.account_of(whole.bucket()), kRun);
  EXPECT_EQ(pool_.account_of(small.bucket()), kRun);
  FreshBlock other = lease.take(pool_, {SizeClass::k64KiB}, worker(self), &fresh);
  EXPECT_EQ(accounts_->used(kRun), 2u) << "the stock of another account has gone back";
  EXPECT_EQ(accounts_->used(AccountId::kNobody), 1u);
  pool_.transfer(kRun, AccountId{4});
  EXPECT_EQ(accounts_->used(kRun), 0u);
  EXPECT_EQ(accounts_->used(AccountId{4}), 2u);
  for (FreshBlock* block : {&whole, &small, &other}) pool_.release(std::move(*block));
  lease.drop(pool_);
  EXPECT_EQ(accounts_->used(AccountId{4}), 0u);
  EXPECT_EQ(accounts_->used(AccountId::kNobody), 0u);
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

TEST_F(BucketPoolTest, LeavesWhatIsReservedToItsAccount) {
  constexpr auto kRun = AccountId{3};
  const Owner self = owners_.current(1);
  accounts_->reserve(kRun, 100);
  std::vector<std::uint32_t> slabs(kSlabs);
  EXPECT_EQ(pool_.lease_whole(self, slabs), kSlabs - 100);
  std::uint32_t cursor = 0;
  SlabIndex slab{};
  EXPECT_FALSE(pool_.lease(SizeClass::k4KiB, self, &cursor, &slab));
  EXPECT_EQ(pool_.lease_whole(self, slabs, kRun), 100u);
  std::array<std::uint32_t, kAccountsMax> counted{};
  pool_.count_used_slabs(counted);
  EXPECT_EQ(counted[0], kSlabs - 100);
  EXPECT_EQ(counted[3], 100u);
}

// A lease that others' buckets come to, such as the service's, hoards nothing; nor are small ones
// kept.
TEST_F(BucketPoolTest, OnlyWholeSlabsOfOneWhoTakesAreKept) {
  const Owner self = owners_.current(1);
  Lease taker;
  Lease::Fresh fresh;
  FreshBlock whole = taker.take(pool_, {SizeClass::k64KiB}, worker(self), &fresh);
  FreshBlock small = taker.take(pool_, {SizeClass::k4KiB}, worker(self), &fresh);
  const BucketIndex small_bucket = small.bucket();
  Lease other;
  other.release(pool_, std::move(whole), self);
  EXPECT_EQ(pool_.free_slabs(), kSlabs - 1);
  taker.release(pool_, std::move(small), self);
  EXPECT_FALSE(pool_.is_taken(small_bucket));
  taker.drop(pool_);
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

// The service took the lease back while its thread was stopped: it must not use what others have.
TEST_F(BucketPoolTest, NothingIsTakenFromALeaseThatWasReclaimed) {
  const Owner late = owners_.current(1);
  std::uint32_t slab = 0;
  ASSERT_EQ(pool_.lease_whole(late, std::span(&slab, 1)), 1u);
  ASSERT_EQ(pool_.reclaim_leases(late), 1u);
  std::uint32_t again = 0;
  ASSERT_EQ(pool_.lease_whole(owners_.current(2), std::span(&again, 1)), 1u);
  ASSERT_EQ(again, slab);
  EXPECT_FALSE(pool_.take_whole(SlabIndex{slab}, worker(late)));
  const BlockDescriptor& descriptor = descriptors_[1 + slab];
  ASSERT_FALSE(BlockDescriptor::is_locked(descriptor.word())) << "nobody waits for it";
  EXPECT_TRUE(pool_.take_whole(SlabIndex{again}, worker(owners_.current(2))));
}

TEST_F(BucketPoolTest, ThreadsNeverShareABucket) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::unique_ptr<std::atomic<int>[]> users(new std::atomic<int>[kSlabs * kPagesPerBlock + 1]());
  std::atomic<bool> shared{false};
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      const Owner self = owners_.current(static_cast<std::uint16_t>(id + 1));
      Lease lease;
      std::vector<BucketIndex> mine;
      std::uint32_t random = static_cast<std::uint32_t>(id) + 1;
      for (int step = 0; step < 20'000; ++step) {
        random = random * 1664525 + 1013904223;
        if ((random >> 16) % 2 == 0 || mine.empty()) {
          const auto size_class = static_cast<SizeClass>((random >> 8) % kSizeClasses);
          const BucketIndex bucket = take(lease, size_class, self);
          if (bucket == BucketIndex::kNone) continue;
          if (users[raw(bucket)].fetch_add(1) != 0) shared = true;
          mine.push_back(bucket);
        } else {
          const BucketIndex bucket = mine.back();
          mine.pop_back();
          users[raw(bucket)].fetch_sub(1);
          release(bucket, self);
        }
      }
      for (const BucketIndex bucket : mine) {
        users[raw(bucket)].fetch_sub(1);
        release(bucket, self);
      }
      lease.drop(pool_);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_FALSE(shared.load());
  EXPECT_EQ(pool_.free_slabs(), kSlabs);
}

}  // namespace
}  // namespace cairn
