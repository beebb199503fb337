// SPDX-License-Identifier: Apache-2.0
// A node's tiers with one file in them, whose blocks the tests of the organizer move.
//
// Thread safety: one thread. Ownership: owns the memory.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "memory/catalog/testing/block_probe.h"
#include "memory/tiers/testing/test_memory.h"
#include "policy/placement/policies.h"
#include "policy/replacement/policies.h"
#include "service/organizer/organizer.h"
#include "service/organizer/testing/tier_filler.h"

namespace cairn::testing {

inline constexpr std::uint32_t kSlabs = 16;

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

class OrganizedTiers : public ::testing::Test {
 protected:
  void create(bool with_file_tier, bool with_slow_tier = false) {
    MemoryShape shape;
    shape.tier_bytes[0] = kSlabs * kBlockBytes;
    shape.tier_bytes[1] = with_file_tier ? 2 * kSlabs * kBlockBytes : 0;
    shape.tier_bytes[2] = with_slow_tier ? 4 * kSlabs * kBlockBytes : 0;
    shape.clients_max = 8;
    shape.objects_max = 64;
    memory_ = make_memory(shape);
    actor_ = make_actor(memory_);
    object_ = make_object(actor_, file_key(1, 2, 3));
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      limits_[tier] = limits_for(memory_.pool(static_cast<TierId>(tier)).slab_count(), 25, 50);
    }
  }

  // A block of the RAM tier filled with its own number, last used at `recency_ms`.
  BucketIndex place(std::uint32_t number, std::uint32_t recency_ms, bool dirty,
                    AccountId account = AccountId::kNobody) {
    const BucketIndex bucket =
        place_block(actor_, object_, TierId::kMemory, number, recency_ms, account);
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

}  // namespace cairn::testing
