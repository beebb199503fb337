// SPDX-License-Identifier: Apache-2.0
// The shared memory of a node as one process maps it: the boards and tables of the control segment
// (memory/tiers/memory_map.h), the bytes of the RAM tier, and the pool files of the file tiers.
//
// A function that needs one board takes that board, not the memory.
//
// Full tables degrade to pass-through and never fail the application.
//
// Thread safety: immutable after construction; what it points to is synchronised by the boards and
// tables themselves.
// Ownership: move-only; unmaps on destruction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/checksums.h"
#include "base/stamp_clock.h"
#include "memory/arena/client_slot.h"
#include "memory/arena/event_board.h"
#include "memory/arena/event_ring.h"
#include "memory/arena/owner.h"
#include "memory/arena/request_ring.h"
#include "memory/arena/service_board.h"
#include "memory/arena/shared_segment.h"
#include "memory/catalog/block_catalog.h"
#include "memory/catalog/description_table.h"
#include "memory/catalog/extend_locks.h"
#include "memory/catalog/rule_table.h"
#include "memory/pool/bucket_pool.h"
#include "memory/pool/capacity_accounts.h"
#include "memory/tiers/array_board.h"
#include "memory/tiers/descriptor_room.h"
#include "memory/tiers/device_board.h"
#include "memory/tiers/failure_board.h"
#include "memory/tiers/fetch_journal.h"
#include "memory/tiers/file_tier.h"
#include "memory/tiers/memory_map.h"
#include "memory/tiers/memory_tier.h"
#include "memory/tiers/move_journal.h"
#include "memory/tiers/organizer_board.h"
#include "memory/tiers/page_sums.h"
#include "memory/tiers/placement_board.h"
#include "memory/tiers/warmer_board.h"

namespace cairn {

namespace testing {
class TierStandIn;
}

class NodeMemory {
 public:
  NodeMemory() = default;
  NodeMemory(NodeMemory&&) = default;
  NodeMemory& operator=(NodeMemory&&) = default;

  // Creates and formats the segments (node service only). Tier t >= 1 makes its pool file in
  // `pool_directories[t]`.
  static Result<NodeMemory> create(const MemoryShape& shape,
                                   const std::array<std::string, kTiersMax>& pool_directories);
  // Maps what the service sent. Takes ownership of the descriptors (-1 = absent).
  // Errors: kIncompatible when magic, version or sizes do not agree.
  static Result<NodeMemory> attach(
      const MemoryShape& shape, int control_fd, int data_fd,
      const std::array<int, kTiersMax>& tier_fds,
      SharedSegment::Descriptor descriptor = SharedSegment::Descriptor::kClose);

  const NodeIdentity& identity() const { return *boards_.identity; }
  ServiceBoard& service_board() const { return *boards_.service; }
  UnservedBoard& unserved_board() const { return *boards_.unserved; }
  StampClock& stamp_clock() const { return *boards_.stamps; }
  PlacementBoard& placement_board() const { return *boards_.placement; }
  DeviceBoard& device_board() const { return *boards_.devices; }
  FailureBoard& failure_board() const { return *boards_.failures; }
  FlusherBoard& flusher_board() const { return *boards_.flusher; }
  OrganizerBoard& organizer_board() const { return *boards_.organizer; }
  EventBoard& event_board() const { return *boards_.events; }
  WarmerBoard& warmer_board() const { return *boards_.warmer; }
  DescriptorRoom& descriptor_room() const { return *boards_.descriptor_room; }
  ExtendLocks& extend_locks() const { return *boards_.extend_locks; }

  ClientSlot& slot(std::uint16_t index) const { return slots_[index]; }
  // As it was agreed upon, whatever stands in the segment now.
  const MemoryShape& shape() const { return shape_; }
  std::uint32_t slot_count() const { return shape_.clients_max; }
  // All blocks, and whatever changes them.
  const BlockCatalog& catalog() const { return catalog_; }
  const OwnerTable& owners() const { return catalog_.owners(); }
  OwnerTable& owners() { return catalog_.owners(); }
  // False when the service is dead and neither another one nor a rescue has followed it.
  bool has_service() const { return owners().has_owner(ClientSlot::kOfService); }
  // There is one that takes what clients write. One that leaves does not, and neither does a
  // rescue: clients make durable by themselves what they write from then on.
  bool is_served() const {
    return has_service() && service_board().detached.load() == ServiceBoard::kAttached;
  }
  // A waiter that the service has not answered calls this: it finds out whether the service is dead
  // for good.
  void look_after_service() const { owners().look_after_last(ClientSlot::kOfService); }
  ObjectTable& objects() const { return catalog_.objects(); }
  OwnedLock& extend_lock(ObjectIndex object) const { return boards_.extend_locks->of(object); }
  RuleTable& rules() const { return rules_; }
  // What rules say of this block alone. Files without rules for parts cost one test of a flag word
  // that the caller has at hand anyway.
  PartHandling part_of(const ObjectHandling& handling, BlockNumber number) const {
    if (__builtin_expect(handling.parts == 0, 1)) return {};
    return rules_.parts().of(handling.parts, number);
  }
  const MoveJournal& journal() const { return journal_; }
  const FetchJournal& fetches() const { return fetches_; }
  ArrayBoard& array_board() const { return *arrays_; }
  // Count a block that was fetched ahead and is used for the first time, or goes before anybody
  // used it; of others, and of one that has just been counted, nothing. Return whether it was
  // counted.
  bool note_used(BucketIndex bucket, bool was_late) const;
  bool note_unused(BucketIndex bucket) const;
  const RequestRing& requests() const { return requests_; }
  EventRing& events(std::uint16_t slot) const { return events_[slot]; }
  // Lets the service know what a process has accessed; see memory/arena/event_ring.h.
  void tell(const AccessEvent& event) const;
  // Calls visit(slot) for every process that has told something since the last call, by one thread.
  template <typename Visit>
  void take_told(Visit&& visit) const {
    for (std::uint32_t word = 0; word <= slot_count() / 64; ++word) {
      if (told_[word].load(std::memory_order_relaxed) == 0) continue;
      std::uint64_t bits = told_[word].exchange(0, std::memory_order_seq_cst);
      for (; bits != 0; bits &= bits - 1)
        visit(static_cast<std::uint16_t>(word * 64 + static_cast<unsigned>(__builtin_ctzll(bits))));
    }
  }
  AccountTable& accounts() const { return *accounts_; }
  DescriptionTable& descriptions() const { return descriptions_; }
  BlockDirectory& directory() const { return catalog_.directory(); }
  BlockDescriptor& block(BucketIndex index) const { return catalog_.block(index); }

  unsigned tier_count() const { return tier_count_; }
  // Whether blocks may come to the tier: it is not out of service.
  bool takes_blocks(TierId tier) const { return !failure_board().is_out(tier); }
  // The tiers that a block of this mode may be in: the swap area is scratch's alone.
  unsigned tiers_for(BufferingMode mode) const {
    return mode == BufferingMode::kScratch || shape_.swap_tier == 0 ? tier_count_
                                                                    : shape_.swap_tier;
  }
  BucketPool& pool(TierId tier) const { return pools_[raw(tier) % kTiersMax]; }
  const Tier& tier(TierId id) const {
    if (id == TierId::kMemory) return memory_tier_;
    if (__builtin_expect(stand_in_ != nullptr, 0)) return *stand_in_;
    return file_tiers_[raw(id) % kTiersMax];
  }
  // The checksums of a tier's pages; in RAM those of sealed pages count
  // (memory/tiers/page_seals.h).
  const PageSums& sums(TierId id) const { return sums_[raw(id) % kTiersMax]; }
  Checksums checksums() const { return static_cast<Checksums>(shape_.checksums); }
  // The tier of a bucket: descriptors of one tier are contiguous.
  TierId tier_of(BucketIndex index) const {
    CAIRN_DCHECK(index != BucketIndex::kNone && raw(index) < bucket_count_);
    unsigned tier = 0;
    while (tier + 1 < tier_count_ && raw(index) >= pools_[tier + 1].shape().first_bucket) ++tier;
    return static_cast<TierId>(tier);
  }
  bool in_memory(BucketIndex index) const { return raw(index) < memory_buckets_end_; }
  // How many bytes a bucket in use has: those of file tiers are not carved.
  std::size_t bucket_bytes(BucketIndex index) const {
    return in_memory(index) ? block(index).bucket_bytes() : kBlockBytes;
  }
  // Where the bytes of a bucket are.
  TierPlace place_of(BucketIndex index) const { return place_of(index, 0, bucket_bytes(index)); }
  // The same for `length` bytes from the bucket's byte `begin` on, which may go on into the buckets
  // that lie behind it.
  TierPlace place_of(BucketIndex index, std::size_t begin, std::size_t length) const {
    const TierId id = tier_of(index);
    return TierPlace{&tier(id), TierExtent{pool(id).offset_of_bucket(index) + begin, length}};
  }
  // The bytes of a bucket, or null when its tier is not memory. For any number that was read
  // without a lock.
  std::byte* bytes_if_in_memory(BucketIndex index) const {
    if (__builtin_expect(pools_[0].is_whole_slab(index), 1)) return bytes(index);
    return index != BucketIndex::kNone && in_memory(index) ? bytes(index) : nullptr;
  }
  // The bytes of a bucket of the RAM tier.
  std::byte* bytes(BucketIndex index) const {
    CAIRN_DCHECK(in_memory(index) && index != BucketIndex::kNone);
    return data_.base() + pools_[0].offset_of_bucket(index);
  }
  const SharedSegment& data() const { return data_; }
  const SharedSegment& control() const { return control_; }
  std::uint32_t bucket_count() const { return bucket_count_; }

  // How the flusher finds its work.
  template <typename Visit>
  void for_each_maybe_dirty(Visit&& visit) const {
    catalog_.dirty().for_each_maybe_dirty(visit);
  }

 private:
  friend class testing::TierStandIn;  // memory/tiers/testing/faulty_tier.h

  // Where they lie in the control segment.
  struct Boards {
    NodeIdentity* identity;
    ServiceBoard* service;
    UnservedBoard* unserved;
    StampClock* stamps;
    PlacementBoard* placement;
    DeviceBoard* devices;
    FailureBoard* failures;
    FlusherBoard* flusher;
    OrganizerBoard* organizer;
    EventBoard* events;
    WarmerBoard* warmer;
    PoolBoard* pools;
    DescriptorRoom* descriptor_room;
    ExtendLocks* extend_locks;
  };

  void bind(const MemoryShape& shape, const MemoryMap& map);
  void bind_boards(const MemoryMap& map);
  void bind_catalog(const MemoryMap& map);
  void bind_pools(const MemoryMap& map);
  void bind_sums(const MemoryMap& map);
  std::size_t take_mark(BucketIndex bucket) const;

  MemoryShape shape_;
  SharedSegment control_;
  SharedSegment data_;
  Boards boards_{};
  AccountTable* accounts_ = nullptr;
  ClientSlot* slots_ = nullptr;
  BlockCatalog catalog_;
  mutable RuleTable rules_;
  MoveJournal journal_;
  FetchJournal fetches_;
  ArrayBoard* arrays_ = nullptr;
  RequestRing requests_;
  EventRing* events_ = nullptr;
  std::atomic<std::uint64_t>* told_ = nullptr;  // a bit per slot
  mutable DescriptionTable descriptions_;
  mutable std::array<BucketPool, kTiersMax> pools_;
  MemoryTier memory_tier_;
  std::array<FileTier, kTiersMax> file_tiers_;
  std::array<PageSums, kTiersMax> sums_;
  const Tier* stand_in_ = nullptr;  // a test's, for the file tiers
  unsigned tier_count_ = 0;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t memory_buckets_end_ = 0;
};

}  // namespace cairn
