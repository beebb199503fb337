// SPDX-License-Identifier: Apache-2.0
// Buckets that are taken from a pool and given back, in every order of their steps: no bucket is
// two threads', and none is lost, whoever dies.
#include "interleavings/testing/expect_all.h"
#include "interleavings/testing/sweep.h"
#include "memory/pool/lease.h"

namespace cairn::stepping {
namespace {

// Operations: a thread takes a bucket for a whole block (`t`) or a small one (`s`), releases the
// last that it took (`r`), and drops its stock (`d`); `x` is the service's sweep.
class PoolScene final : public Scene {
 public:
  PoolScene() { pool().format(); }
  std::span<std::byte> memory() override { return bytes_of(shared_); }
  std::span<const std::byte> own(unsigned actor) override {
    return bytes_of(shared_.threads[actor]);
  }
  bool is_aside(const void* address) const override {
    const auto* at = static_cast<const std::byte*>(address);
    const auto* accounts = reinterpret_cast<const std::byte*>(&shared_.accounts);
    return at >= accounts && at < accounts + sizeof shared_.accounts;
  }
  void act(unsigned actor, char operation) override {
    Thread& thread = shared_.threads[actor];
    switch (operation) {
      case 't':
        return take(actor, SizeClass::k64KiB);
      case 's':
        return take(actor, SizeClass::k16KiB);
      case 'r':
        return thread.count == 0 ? void() : release(thread, worker(actor));
      case 'd':
        return thread.lease.drop(pool_);
      default:
        return sweep_up(worker(actor));
    }
  }
  // Nobody keeps a bucket locked for long.
  void finish(unsigned actor) override {
    while (shared_.threads[actor].count != 0) release(shared_.threads[actor], worker(actor));
  }
  void bury(unsigned actor) override {
    shared_.somebody_died = true;
    catalog_.owners().advance(owner_slot(actor));
  }
  void settle() override {
    const BlockWorker service{&catalog_, Owner(1, 0)};
    // Which would find what is lost without a death, too.
    if (shared_.somebody_died) sweep_up(service);
    for (unsigned actor = 0; actor < kThreads; ++actor) {
      Thread& thread = shared_.threads[actor];
      if (catalog_.owners().is_alive(worker(actor).self)) thread.lease.drop(pool_);
    }
    require(pool_.count_free_slabs() == kSlabs, "a bucket is lost");
    if (!shared_.somebody_died) {
      require(pool_.free_slabs() == kSlabs, "the count of free slabs is off");
      require(shared_.accounts.used(AccountId::kNobody) == 0, "an account is off");
    }
    pool_.correct_free_slabs(static_cast<std::int32_t>(kSlabs - pool_.free_slabs()));
    std::array<std::uint32_t, 1> slab{};
    for (std::uint32_t count = 0; count < kSlabs; ++count)
      require(pool_.lease_whole(service.self, slab) == 1, "a free slab is not found");
  }

 private:
  static constexpr std::uint32_t kSlabs = 2;
  static constexpr std::uint32_t kBuckets = kSlabs * kPagesPerBlock + 1;
  static constexpr unsigned kThreads = 3;
  static constexpr unsigned kTakenMax = 16;
  struct Thread {
    Lease lease;
    std::array<BucketIndex, kTakenMax> taken{};
    std::uint32_t count = 0;
  };
  struct Shared {
    Generations generations;
    std::array<std::atomic<std::uint64_t>, kSlabs> slabs{};
    std::array<std::atomic<std::uint64_t>, kSizeClasses> hints{};
    std::atomic<std::uint32_t> free_slabs;
    std::array<Thread, kThreads> threads{};
    std::array<std::uint8_t, kSlabs * kPagesPerBlock> holders{};  // of each page
    bool somebody_died = false;
    std::array<BlockDescriptor, kBuckets> descriptors{};
    TierAccounts accounts{};
  };

  BucketPool& pool() { return pool_; }
  BlockWorker worker(unsigned actor) const { return {&catalog_, Owner(owner_slot(actor), 0)}; }

  void take(unsigned actor, SizeClass size_class) {
    Thread& thread = shared_.threads[actor];
    Lease::Fresh fresh;
    FreshBlock block = thread.lease.take(pool_, {size_class}, worker(actor), &fresh);
    if (!block) return;
    for_pages_of(block.bucket(), size_class, [&](std::uint8_t& holder) {
      require(holder == 0, "a bucket is given out twice");
      holder = static_cast<std::uint8_t>(actor + 1);
    });
    require(pool_.is_taken(block.bucket()), "a bucket is in use and in the pool");
    thread.taken[thread.count++] = std::move(block).leave_locked();
  }
  void release(Thread& thread, const BlockWorker& by) {
    FreshBlock block = FreshBlock::of_locked(by, thread.taken[--thread.count]);
    forget(block.bucket(), block.descriptor().size_class());
    thread.lease.release(pool_, std::move(block), by.self);
  }
  void sweep_up(const BlockWorker& by) {
    sweep(pool_, by, [this](BucketIndex bucket) { forget(bucket, pool_.class_of(bucket)); });
  }
  void forget(BucketIndex bucket, SizeClass size_class) {
    for_pages_of(bucket, size_class, [](std::uint8_t& holder) { holder = 0; });
  }
  template <typename Visit>
  void for_pages_of(BucketIndex bucket, SizeClass size_class, Visit&& visit) {
    const std::uint64_t first = pool_.offset_of_bucket(bucket) / kPageBytes;
    for (unsigned page = 0; page < pages_in(size_class); ++page)
      visit(shared_.holders[first + page]);
  }

  Shared shared_;
  BlockCatalog catalog_{shared_.generations.table(), ObjectTable(),
                        BlockDirectory(HashLines(), shared_.descriptors.data(), kBuckets),
                        DirtyBlocks()};
  BucketPool pool_{{shared_.slabs.data(),
                    &shared_.hints[0],
                    {&shared_.hints[1], &shared_.hints[2]},
                    &shared_.free_slabs,
                    &shared_.accounts},
                   {kSlabs, kPagesPerBlock, 1}};
};

TEST(PoolOrders, TwoThreadsOfWhomOneMayDie) {
  expect_all<PoolScene>({"trd", "ttr", "srt", "trt"}, {.deaths_max = 1});
}

// A slab that one thread has shared out is another's, while the first still has a bucket of it.
TEST(PoolOrders, TwoThreadsInOneSlab) {
  expect_each<PoolScene>({{"sdr", "ss"}, {"sdr", "sdr"}}, {.deaths_max = 1});
}

TEST(PoolOrders, AThreadAndTheSweep) {
  expect_each<PoolScene>({{"trt", "xxx"}, {"ssr", "xxx"}, {"std", "xtx"}}, {.deaths_max = 1});
}

TEST(PoolOrders, MoreByChance) {
  expect_some<PoolScene>({"ttssrrd", "ttssrrd", "tsrx"}, 8, 20'000);
}

}  // namespace
}  // namespace cairn::stepping
