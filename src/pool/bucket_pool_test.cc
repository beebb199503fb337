// SPDX-License-Identifier: Apache-2.0
#include "pool/bucket_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "pool/lease.h"

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
    pool_ = BucketPool(words, BucketPool::Shape{kSlabs, kPagesPerBlock, 1}, descriptors_.get());
    pool_.format();
  }
  BucketIndex take(Lease& lease, SizeClass size_class, Owner self) {
    Lease::Fresh fresh;
    const BucketIndex bucket = lease.take(pool_, size_class, self, owners_, 1, &fresh);
    // In use: what a publisher does, without a directory.
    if (bucket != BucketIndex::kNone) descriptors_[raw(bucket)].unlock(self, true);
    return bucket;
  }
  void release(BucketIndex bucket, Owner self) {
    descriptors_[raw(bucket)].lock(self, owners_);
    pool_.release(bucket, self);
  }

  std::unique_ptr<std::atomic<std::uint32_t>[]> generations_{new std::atomic<std::uint32_t>[16]()};
  OwnerTable owners_{generations_.get(), 16};
  std::unique_ptr<std::atomic<std::uint64_t>[]> slabs_{new std::atomic<std::uint64_t>[kSlabs]()};
  std::unique_ptr<std::atomic<std::uint64_t>[]> free_hint_{new std::atomic<std::uint64_t>[8]()};
  std::unique_ptr<std::atomic<std::uint64_t>[]> partial_[2] = {
      std::unique_ptr<std::atomic<std::uint64_t>[]>(new std::atomic<std::uint64_t>[8]()),
      std::unique_ptr<std::atomic<std::uint64_t>[]>(new std::atomic<std::uint64_t>[ 8 ]())};
  std::atomic<std::uint32_t> free_slabs_{0};
  std::unique_ptr<BlockDescriptor[]> descriptors_{new BlockDescriptor[kSlabs * kPagesPerBlock + 1]};
  BucketPool pool_;
};

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
