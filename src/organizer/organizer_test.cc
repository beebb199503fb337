// SPDX-License-Identifier: Apache-2.0
#include "organizer/organizer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "flush/dirty_accounting.h"
#include "placement/policies.h"
#include "replacement/policies.h"

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
  void write_all(std::span<BatchWrite> writes) override {
    for (BatchWrite& write : writes) write.result = -5;
  }
};

// Runs `meddle` between the write of a batch and its commit.
class MeddlingWriter final : public BatchWriter {
 public:
  template <typename Meddle>
  explicit MeddlingWriter(Meddle meddle) : meddle_(std::move(meddle)) {}
  void write_all(std::span<BatchWrite> writes) override {
    plain_.write_all(writes);
    meddle_();
  }

 private:
  PlainBatchWriter plain_;
  std::function<void()> meddle_;
};

class OrganizerTest : public testing::Test {
 protected:
  void create(bool with_file_tier) {
    MemoryShape shape;
    shape.tier_bytes[0] = kSlabs * kBlockBytes;
    shape.tier_bytes[1] = with_file_tier ? 2 * kSlabs * kBlockBytes : 0;
    shape.clients_max = 8;
    shape.objects_max = 64;
    std::array<std::string, kTiersMax> paths;
    paths[1] = "/tmp/cairn-organizer-test-" + std::to_string(::getpid());
    auto memory = NodeMemory::create(shape, paths);
    ASSERT_TRUE(memory.is_ok()) << memory.status().message();
    ::unlink(paths[1].c_str());
    memory_ = std::move(memory.value());
    actor_.memory = &memory_;
    actor_.self = memory_.owners().current(1);
    actor_.counters = &memory_.slot(1).shards[0];
    bool created = false;
    object_ = memory_.objects().acquire(FileKey{1, 2, 3}, StoreStamp{}, actor_.self,
                                        memory_.owners(), &created);
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      limits_[tier] = limits_for(memory_.pool(static_cast<TierId>(tier)).slab_count(), 25, 50);
    }
  }

  // A block of the RAM tier filled with its own number, used `age` ago.
  BucketIndex place(std::uint32_t number, std::uint32_t recency_ms, bool dirty,
                    AccountId account = AccountId::kNobody) {
    Lease::Fresh fresh;
    const BucketIndex bucket =
        actor_.leases[0].take(memory_.pool(TierId::kMemory), SizeClass::k64KiB, actor_.self,
                              memory_.owners(), 1, &fresh, account);
    EXPECT_NE(bucket, BucketIndex::kNone);
    BlockDescriptor& block = memory_.block(bucket);
    block.set_identity(object_, static_cast<BlockNumber>(number));
    block.enter(BlockState::kFilling);
    std::memset(memory_.bytes(bucket), static_cast<int>(number), kBlockBytes);
    block.valid_pages.store(0xffff);
    block.recency_ms.store(recency_ms);
    memory_.directory().publish(bucket, actor_.self, memory_.owners());
    actor_.object(object_).blocks.fetch_add(1);
    if (dirty) {
      note_block_dirty(actor_, bucket, object_);
      block.dirty_pages.store(0xffff);
    }
    block.enter(dirty ? BlockState::kDirty : BlockState::kClean);
    actor_.unlock(block, true);
    return bucket;
  }

  void fill(bool dirty) {
    for (std::uint32_t number = 0; number < kSlabs; ++number) place(number, 1000 + number, dirty);
    actor_.drop_leases();
  }

  BucketIndex find(std::uint32_t number) const {
    return memory_.directory().find(object_, static_cast<BlockNumber>(number));
  }
  TierId tier_of(std::uint32_t number) const { return memory_.tier_of(find(number)); }

  void expect_content(std::uint32_t number) const {
    const BucketIndex bucket = find(number);
    ASSERT_NE(bucket, BucketIndex::kNone);
    std::vector<std::byte> expected(kBlockBytes, static_cast<std::byte>(number));
    const std::byte* bytes = memory_.in_memory(bucket) ? memory_.bytes(bucket) : nullptr;
    auto* read = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kBlockBytes));
    if (bytes == nullptr) {
      const TierId tier = memory_.tier_of(bucket);
      ASSERT_EQ(memory_.file_tier(tier).read_pages(memory_.pool(tier).offset_of_bucket(bucket),
                                                   read, kBlockBytes),
                0);
      bytes = read;
    }
    EXPECT_EQ(std::memcmp(bytes, expected.data(), kBlockBytes), 0) << number;
    std::free(read);
  }

  RoomMade make_room(BatchWriter& writer) {
    Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], writer,
                        limits_);
    const RoomMade made = organizer.make_room(actor_, TierId::kMemory);
    actor_.drop_leases();
    return made;
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
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  EXPECT_EQ(tier_of(kSlabs - 1), TierId::kMemory);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, DirtyBlocksStayDirtyWhereTheyArrive) {
  create(true);
  fill(true);
  const std::uint64_t dirty_before = memory_.header().dirty_bytes.load();
  make_room(plain_);
  EXPECT_EQ(actor_.object(object_).dirty_blocks.load(), kSlabs);
  EXPECT_EQ(memory_.header().dirty_bytes.load(), dirty_before);
  const BlockDescriptor& block = memory_.block(find(0));
  EXPECT_EQ(tier_of(0), static_cast<TierId>(1));
  EXPECT_EQ(block.state.load(), BlockState::kDirty);
  EXPECT_EQ(block.dirty_pages.load(), 0xffff);
  std::uint32_t marked = 0;
  memory_.for_each_maybe_dirty([&](BucketIndex bucket) {
    if (memory_.block(bucket).dirty_pages.load() != 0) ++marked;
  });
  EXPECT_EQ(marked, kSlabs);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
  expect_nothing_leaks();
}

TEST_F(OrganizerTest, AFailedWriteLeavesTheBlockWhereItWas) {
  create(true);
  fill(true);
  FailingWriter failing;
  const RoomMade made = make_room(failing);
  EXPECT_EQ(made.demoted, 0u);
  for (std::uint32_t number = 0; number < kSlabs; ++number) {
    EXPECT_EQ(tier_of(number), TierId::kMemory);
    EXPECT_EQ(memory_.block(find(number)).flusher.load(), 0u);
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
    BlockDescriptor& block = memory_.block(find(0));
    actor_.lock(block);
    std::memset(memory_.bytes(find(0)), 0, kBlockBytes);
    actor_.unlock(block, true);
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

TEST_F(OrganizerTest, RaisesTheBlocksOfAFile) {
  create(true);
  fill(true);
  make_room(plain_);
  ASSERT_EQ(tier_of(0), static_cast<TierId>(1));
  const std::uint64_t dirty_before = memory_.header().dirty_bytes.load();
  Organizer organizer(memory_, *placement_policies()[0], *replacement_policies()[0], plain_,
                      limits_);
  const std::uint32_t raised = organizer.raise(actor_, object_, TierId::kMemory);
  actor_.drop_leases();
  EXPECT_EQ(raised, limits_[0].high_slabs) << "as many as there is room for";
  EXPECT_EQ(memory_.header().dirty_bytes.load(), dirty_before);
  for (std::uint32_t number = 0; number < kSlabs; ++number) expect_content(number);
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
  BlockDescriptor& busy = memory_.block(find(0));
  actor_.lock(busy);
  const RoomMade made = make_room(plain_);
  EXPECT_GE(made.dropped, limits_[0].high_slabs);
  EXPECT_NE(find(0), BucketIndex::kNone);
  actor_.unlock(busy, false);
  expect_nothing_leaks();
}

}  // namespace
}  // namespace cairn
