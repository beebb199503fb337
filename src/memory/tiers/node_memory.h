// SPDX-License-Identifier: Apache-2.0
// The shared memory of a node as one process maps it: every table of the control segment, the bytes
// of the RAM tier, and the pool files of the file tiers.
//
// The control segment has a fixed layout that is computed once from the tiers' capacities: no
// growth, no rehash, no allocator. Full tables degrade to pass-through and never fail the
// application.
//
// Thread safety: immutable after construction; what it points to is synchronised by the tables
// themselves.
// Ownership: move-only; unmaps on destruction.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "base/cycle_clock.h"
#include "base/stamp_clock.h"
#include "memory/arena/client_slot.h"
#include "memory/arena/event_ring.h"
#include "memory/arena/owner.h"
#include "memory/arena/request_ring.h"
#include "memory/arena/shared_segment.h"
#include "memory/catalog/block_catalog.h"
#include "memory/catalog/description_table.h"
#include "memory/catalog/rule_table.h"
#include "memory/pool/bucket_pool.h"
#include "memory/pool/capacity_accounts.h"
#include "memory/tiers/descriptor_room.h"
#include "memory/tiers/fetch_journal.h"
#include "memory/tiers/file_tier.h"
#include "memory/tiers/move_journal.h"
#include "memory/tiers/published_plan.h"

namespace cairn {

inline constexpr std::uint64_t kControlMagic = 0x31304e5249414343;  // "CCAIRN01", little endian
inline constexpr std::uint32_t kLayoutVersion = 13;

// What the layout is computed from. Travels in the handshake; both sides compute the same layout.
struct MemoryShape {
  std::uint64_t tier_bytes[kTiersMax] = {};  // [0] is the RAM tier; 0 = absent
  std::uint32_t clients_max = 1024;
  std::uint32_t objects_max = 0;  // 0: one per 4 KiB of the RAM tier
  // Open descriptions, and the holds of processes on them (memory/catalog/description_table.h).
  std::uint32_t descriptions_max = 65536;
  std::uint32_t holds_max = 4 * 65536;
  std::uint32_t requests_max = RequestRing::kSlotsMax;
  std::uint32_t huge_pages = 0;  // a HugePages value
  // The last tier, where scratch data goes that the others have no room for; 0: there is none.
  std::uint32_t swap_tier = 0;
};

// First page of the control segment: identity, sizes, and the words that wake the service.
struct ControlHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t reserved;
  MemoryShape shape;
  CycleAnchor started;
  std::atomic<std::int32_t> service_pid;
  // Programs that cannot be intercepted are running in the node's process trees: close() stores at
  // once.
  std::atomic<std::uint32_t> foreign_programs;
  std::atomic<std::uint32_t> detached;  // the service is leaving: write through
  // A program has opened regular files with O_PATH: an unlinked file may be looked at after its
  // last description is gone.
  std::atomic<std::uint32_t> path_descriptors;
  // Files that unserved processes use and that the table of objects had no room for: while there
  // are any, the maker of a new object asks the service whether it is for one of them
  // (service/write_back/unserved_files.h).
  std::atomic<std::uint32_t> keys_unserved;
  StampClock stamps;
  // Where new blocks go, by the number of the policy. A bit of `plans_by_object` says that the
  // policy keeps the pieces of a file together.
  PublishedPlan plans[kPlansMax];
  std::atomic<std::uint32_t> plans_by_object;
  // While a policy rations the RAM tier: of a new file that many blocks may go there, what comes
  // behind them goes below. 0: no limit.
  std::atomic<std::uint32_t> plan_memory_blocks[kPlansMax];
  // A bit says of a policy that it would rather have room made in RAM than place what is written
  // below: the organizer is at it, and who writes waits for it.
  std::atomic<std::uint32_t> plans_making_room;
  // Bytes per second that the device of a tier takes, measured; 0: nobody has said.
  std::atomic<double> tier_bandwidth[kTiersMax];
  // What holds for a file that no rule speaks of: bits of an ObjectHandling.
  std::atomic<std::uint32_t> default_handling;
  // Wake the organizer when a tier has fewer (more) free slabs: the plans are to be made anew.
  std::atomic<std::uint32_t> plan_low_slabs[kTiersMax];
  std::atomic<std::uint32_t> plan_high_slabs[kTiersMax];
  alignas(64) std::atomic<std::uint32_t> flusher_wake;  // futex: dirty data appeared
  std::atomic<std::uint32_t> flusher_sleeping;
  // The organizer sleeps until somebody reads, to see what is hot: the reader wakes it once.
  std::atomic<std::uint32_t> rank_wanted;
  alignas(64) std::atomic<std::uint32_t> organizer_wake;  // futex: a tier is short of room
  std::atomic<std::uint32_t> organizer_sleeping;
  // When a program last waited for room in RAM, and when it did so in vain (coarse ms); how often
  // blocks have left it.
  std::atomic<std::uint32_t> room_wanted_ms;
  std::atomic<std::uint32_t> room_missed_ms;
  std::atomic<std::uint32_t> room_made;
  // wake the organizer below this many free slabs
  std::atomic<std::uint32_t> low_slabs[kTiersMax];
  // With more free slabs of RAM than that, whatever is read moves up into it.
  std::atomic<std::uint32_t> roomy_slabs;
  // What is read for the first time is not worth a write to any tier below: without room in RAM it
  // is not placed.
  std::atomic<std::uint32_t> reads_stay_above;
  // With fewer, what has been used more often than what had to leave lately: PromotionBar.
  std::atomic<std::uint64_t> promotion_bar;
  alignas(64) std::atomic<std::uint32_t> events_wake;  // futex: some process has told an event
  std::atomic<std::uint32_t> events_sleeping;
  std::atomic<std::uint32_t> events_are_urgent;  // some that were told since the last look
  // What the service wants to know of; what is less than that, too. 0: nobody tells it anything.
  static constexpr std::uint32_t kEventsOfReads = 1;
  static constexpr std::uint32_t kEventsOfWrites = 2;
  std::atomic<std::uint32_t> events_wanted;
  // Which files are opened decides what is fetched next: the service is woken for each.
  std::atomic<std::uint32_t> opens_are_urgent;
  // When a program last read from the device of a tier (coarse ms): moves then give way to it.
  alignas(64) std::atomic<std::uint32_t> device_read_ms[kTiersMax];
  // Of 256 reads of a file tier, how many go to the backing store: its device is saturated.
  std::atomic<std::uint32_t> read_around[kTiersMax];
  alignas(64) std::atomic<std::uint32_t> object_cursor;
  std::atomic<std::uint32_t> objects_live;
  std::atomic<std::uint32_t> description_cursor;
  std::atomic<std::uint32_t> hold_cursor;
  std::atomic<std::uint32_t> descriptions_full;  // FullMark
  std::atomic<std::uint32_t> holds_full;
  alignas(64) std::atomic<std::uint32_t> free_slabs[kTiersMax];
  alignas(64)
      std::atomic<std::uint32_t> openings;  // of all clients; see frontends/client/opening_guard.h
  // Files whose descriptor would be one too many are written through.
  DescriptorRoom descriptor_room;
  alignas(64) std::atomic<std::uint64_t> dirty_bytes;  // estimate: dirty pages, all tiers
  // Slabs of the RAM tier below `warm_slabs` have had their memory allocated ahead of use;
  // `used_slabs` is the highest that was ever leased. See service/capacity/page_warmer.h.
  alignas(64) std::atomic<std::uint32_t> used_slabs;
  std::atomic<std::uint32_t> warm_slabs;
  std::atomic<std::uint32_t> warmer_wake;  // futex
  // Whoever makes a backing file longer holds its object's lock of these: asking for the size and
  // setting it is two calls, and a write that ended past it in between would be cut off. Taken
  // last, below the locks of blocks.
  static constexpr unsigned kExtendLocks = 64;
  alignas(64) OwnedLock extend_locks[kExtendLocks];
};
static_assert(sizeof(ControlHeader) <= 4096, "the header is one page");
static_assert(std::is_trivially_copyable_v<MemoryShape>, "it travels in the handshake");
static_assert(alignof(ControlHeader) == 64, "words of different writers share no line");

class NodeMemory {
 public:
  NodeMemory() = default;
  NodeMemory(NodeMemory&&) = default;
  NodeMemory& operator=(NodeMemory&&) = default;

  // Creates and formats the segments (node service only). `pool_paths[t]` is the pool file of tier
  // t >= 1.
  static Result<NodeMemory> create(const MemoryShape& shape,
                                   const std::array<std::string, kTiersMax>& pool_paths);
  // Maps what the service sent. Takes ownership of the descriptors (-1 = absent).
  // Errors: kIncompatible when magic, version or sizes do not agree.
  static Result<NodeMemory> attach(const MemoryShape& shape, int control_fd, int data_fd,
                                   const std::array<int, kTiersMax>& tier_fds);

  static std::uint64_t control_bytes(const MemoryShape& shape);

  ControlHeader& header() const { return *header_; }
  ClientSlot& slot(std::uint16_t index) const { return slots_[index]; }
  // As it was agreed upon, whatever stands in the header now.
  const MemoryShape& shape() const { return shape_; }
  std::uint32_t slot_count() const { return shape_.clients_max; }
  // All blocks, and whatever changes them.
  const BlockCatalog& catalog() const { return catalog_; }
  const OwnerTable& owners() const { return catalog_.owners(); }
  OwnerTable& owners() { return catalog_.owners(); }
  // The service's name from its start on: only its death advances the generation.
  static constexpr Owner service() { return {ClientSlot::kOfService, 0}; }
  ObjectTable& objects() const { return catalog_.objects(); }
  OwnedLock& extend_lock(ObjectIndex object) const {
    return header_->extend_locks[raw(object) % ControlHeader::kExtendLocks];
  }
  RuleTable& rules() const { return rules_; }
  // What rules say of this block alone. Files without rules for parts cost one test of a flag word
  // that the caller has at hand anyway.
  PartHandling part_of(const ObjectHandling& handling, BlockNumber number) const {
    if (__builtin_expect(handling.parts == 0, 1)) return {};
    return rules_.parts().of(handling.parts, number);
  }
  const MoveJournal& journal() const { return journal_; }
  const FetchJournal& fetches() const { return fetches_; }
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
  // The tiers that a block of this mode may be in: the swap area is scratch's alone.
  unsigned tiers_for(BufferingMode mode) const {
    return mode == BufferingMode::kScratch || shape_.swap_tier == 0 ? tier_count_
                                                                    : shape_.swap_tier;
  }
  BucketPool& pool(TierId tier) const { return pools_[raw(tier) % kTiersMax]; }
  const FileTier& file_tier(TierId tier) const { return file_tiers_[raw(tier) % kTiersMax]; }
  // The tier of a bucket: descriptors of one tier are contiguous.
  TierId tier_of(BucketIndex index) const {
    CAIRN_DCHECK(index != BucketIndex::kNone && raw(index) < bucket_count_);
    unsigned tier = 0;
    while (tier + 1 < tier_count_ && raw(index) >= pools_[tier + 1].shape().first_bucket) ++tier;
    return static_cast<TierId>(tier);
  }
  bool in_memory(BucketIndex index) const { return raw(index) < memory_buckets_end_; }
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

  void note_device_read(TierId tier, std::uint32_t now_ms) const {
    std::atomic<std::uint32_t>& seen = header_->device_read_ms[raw(tier)];
    if (seen.load(std::memory_order_relaxed) != now_ms)
      seen.store(now_ms, std::memory_order_relaxed);
  }
  void wake_flusher() const { catalog_.dirty().bell().ring(); }
  void wake_organizer() const;
  // Memory that is kept allocated ahead of use: 16 to 256 MiB.
  static constexpr std::uint32_t kWarmSlabsMin = 256;
  static constexpr std::uint32_t kWarmSlabsMax = 4096;
  // Slabs up to `past` of the RAM tier are in use: have memory for the next ones allocated in the
  // background.
  void note_slabs_used(std::uint32_t past) const;

 private:
  struct Layout;
  Status bind(const MemoryShape& shape);
  void bind_pools(const MemoryShape& shape, const Layout& layout);
  std::size_t take_mark(BucketIndex bucket) const;

  MemoryShape shape_;
  SharedSegment control_;
  SharedSegment data_;
  ControlHeader* header_ = nullptr;
  AccountTable* accounts_ = nullptr;
  ClientSlot* slots_ = nullptr;
  BlockCatalog catalog_;
  mutable RuleTable rules_;
  MoveJournal journal_;
  FetchJournal fetches_;
  RequestRing requests_;
  EventRing* events_ = nullptr;
  std::atomic<std::uint64_t>* told_ = nullptr;  // a bit per slot
  mutable DescriptionTable descriptions_;
  mutable std::array<BucketPool, kTiersMax> pools_;
  std::array<FileTier, kTiersMax> file_tiers_;
  unsigned tier_count_ = 0;
  std::uint32_t bucket_count_ = 0;
  std::uint32_t memory_buckets_end_ = 0;
};

}  // namespace cairn
