// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/node_memory.h"

#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "base/huge_pages.h"
#include "base/system_call.h"

namespace cairn {
namespace {

using Word = std::atomic<std::uint64_t>;

// The tables stay on small or transparent pages: hugetlb pages would be reserved for all of their
// sparse size.
HugePages pages_of_control(const MemoryShape& shape) {
  return static_cast<HugePages>(shape.huge_pages) == HugePages::kNever ? HugePages::kNever
                                                                       : HugePages::kAdvise;
}

Result<NodeId> make_node_id() {
  NodeId id;
  const long got = sys::call(SYS_getrandom, sys::word(&id), sizeof id, 0);
  if (got != static_cast<long>(sizeof id))
    return Status::from_errno(got < 0 ? static_cast<int>(-got) : EIO, "no random number to be had");
  return id;
}

// A node without a RAM tier has one page of it.
std::uint64_t bytes_of_data(const MemoryShape& shape) {
  return std::max<std::uint64_t>(shape.tier_bytes[0], 1);
}

}  // namespace

void NodeMemory::bind(const MemoryShape& shape, const MemoryMap& map) {
  CAIRN_CHECK(map.end() <= control_.size_bytes());
  CAIRN_CHECK(shape.tier_bytes[0] <= data_.size_bytes());
  shape_ = shape;
  memory_tier_ = MemoryTier(data_.base(), shape.tier_bytes[0]);
  bind_boards(map);
  bind_catalog(map);
  bind_pools(map);
  bind_sums(map);
  for (unsigned tier = 1; tier < tier_count_; ++tier) {
    file_tiers_[tier].count_failures(
        {boards_.failures, static_cast<TierId>(tier), tier == shape.swap_tier});
  }
}

void NodeMemory::bind_boards(const MemoryMap& map) {
  std::byte* base = control_.base();
  boards_ = Boards{
      .identity = map.find<NodeIdentity>(base, Table::kIdentity),
      .service = map.find<ServiceBoard>(base, Table::kService),
      .unserved = map.find<UnservedBoard>(base, Table::kUnserved),
      .stamps = map.find<StampClock>(base, Table::kStamps),
      .placement = map.find<PlacementBoard>(base, Table::kPlacement),
      .devices = map.find<DeviceBoard>(base, Table::kDevices),
      .failures = map.find<FailureBoard>(base, Table::kFailures),
      .flusher = map.find<FlusherBoard>(base, Table::kFlusher),
      .organizer = map.find<OrganizerBoard>(base, Table::kOrganizer),
      .events = map.find<EventBoard>(base, Table::kEvents),
      .warmer = map.find<WarmerBoard>(base, Table::kWarmer),
      .pools = map.find<PoolBoard>(base, Table::kPoolBoard),
      .descriptor_room = map.find<DescriptorRoom>(base, Table::kDescriptorRoom),
      .extend_locks = map.find<ExtendLocks>(base, Table::kExtendLocks),
  };
  accounts_ = map.find<AccountTable>(base, Table::kAccounts);
  slots_ = map.find<ClientSlot>(base, Table::kSlots);
  told_ = map.find<Word>(base, Table::kTold);
  events_ = map.find<EventRing>(base, Table::kEventRings);
  requests_ = RequestRing(map.find<RequestRing::Table>(base, Table::kRequests), shape_.requests_max,
                          ClientSlot::kOfService);
  rules_ = RuleTable(map.find<RuleTable::Bytes>(base, Table::kRules));
  journal_ = MoveJournal(map.find<MoveJournal::Bytes>(base, Table::kMoves));
  fetches_ = FetchJournal(map.find<FetchJournal::Bytes>(base, Table::kFetches));
  arrays_ = map.find<ArrayBoard>(base, Table::kArrays);
}

void NodeMemory::bind_catalog(const MemoryMap& map) {
  std::byte* base = control_.base();
  const auto lines = [&](Table table) {
    return HashLines(map.find<HashLine>(base, table), map.count_of(table));
  };
  bucket_count_ = map.count_of(Table::kBlocks);
  descriptions_ = DescriptionTable(map.find<OpenDescription>(base, Table::kDescriptions),
                                   map.count_of(Table::kDescriptions),
                                   map.find<Hold>(base, Table::kHolds), map.count_of(Table::kHolds),
                                   map.find<DescriptionBoard>(base, Table::kDescriptionBoard));
  catalog_ = BlockCatalog(
      OwnerTable(map.find<std::atomic<std::uint32_t>>(base, Table::kGenerations),
                 map.count_of(Table::kGenerations)),
      ObjectTable(map.find<Object>(base, Table::kObjects), map.count_of(Table::kObjects),
                  lines(Table::kObjectLines), map.find<ObjectBoard>(base, Table::kObjectBoard),
                  boards_.unserved),
      BlockDirectory(lines(Table::kBlockLines), map.find<BlockDescriptor>(base, Table::kBlocks),
                     bucket_count_),
      DirtyBlocks(map.find<Word>(base, Table::kDirtyMap), bucket_count_, boards_.flusher));
}

void NodeMemory::bind_pools(const MemoryMap& map) {
  std::byte* base = control_.base();
  std::uint32_t first_bucket = 1;
  tier_count_ = 1;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    BucketPool::Words words{};
    words.slabs = map.find<Word>(base, of_tier(Table::kSlabs, tier));
    words.free_hint = map.find<Word>(base, of_tier(Table::kFreeHints, tier));
    words.partial_hint[0] = map.find<Word>(base, Table::kSmallHints);
    words.partial_hint[1] = map.find<Word>(base, Table::kMiddleHints);
    words.free_slabs = &boards_.pools->free_slabs[tier];
    words.accounts = &accounts_->tiers[tier];
    BucketPool::Shape pool_shape;
    pool_shape.slab_count = map.count_of(of_tier(Table::kSlabs, tier));
    pool_shape.descriptors_per_slab = tier == 0 ? kPagesPerBlock : 1;
    pool_shape.first_bucket = first_bucket;
    first_bucket += pool_shape.slab_count * pool_shape.descriptors_per_slab;
    pools_[tier] = BucketPool(words, pool_shape);
    if (tier == 0) memory_buckets_end_ = first_bucket;
    if (pool_shape.slab_count != 0) tier_count_ = tier + 1;
  }
  CAIRN_CHECK(first_bucket == bucket_count_);
  CAIRN_CHECK(memory_buckets_end_ != 0 && memory_buckets_end_ <= bucket_count_);
}

void NodeMemory::bind_sums(const MemoryMap& map) {
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    const Table table = of_tier(Table::kPageSums, tier);
    if (map.count_of(table) == 0) continue;
    sums_[tier] = PageSums(map.find<PageSums::Word>(control_.base(), table), map.count_of(table));
    if (tier != 0) file_tiers_[tier].set_sums(sums_[tier]);
  }
}

Result<NodeMemory> NodeMemory::create(const MemoryShape& shape,
                                      const std::array<std::string, kTiersMax>& pool_directories) {
  NodeMemory memory;
  const MemoryMap map(shape);
  auto control = SharedSegment::create("cairn-control", map.end(), pages_of_control(shape));
  if (!control) return control.status();
  memory.control_ = std::move(control.value());
  auto data = SharedSegment::create("cairn-data", bytes_of_data(shape),
                                    static_cast<HugePages>(shape.huge_pages));
  if (!data) return data.status();
  memory.data_ = std::move(data.value());
  const Result<NodeId> node = make_node_id();
  if (!node) return node.status();
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (shape.slabs(tier) == 0) continue;
    const PoolIdentity identity{*node, tier, shape.slabs(tier)};
    const bool is_swap = tier == shape.swap_tier;
    auto file = FileTier::create(pool_directories[tier], identity,
                                 is_swap ? FileTier::Room::kWhenNeeded : FileTier::Room::kTaken);
    if (!file) return file.status();
    memory.file_tiers_[tier] = std::move(file.value());
  }
  MemoryShape shape_as_made = shape;
  shape_as_made.huge_pages = static_cast<std::uint32_t>(memory.data_.huge_pages());
  memory.bind(shape_as_made, map);
  for (unsigned tier = 0; tier < memory.tier_count_; ++tier) memory.pools_[tier].format();
  *memory.boards_.identity = NodeIdentity{.magic = kControlMagic,
                                          .layout_version = kLayoutVersion,
                                          .reserved = 0,
                                          .layout_digest = map.digest(),
                                          .shape = shape_as_made,
                                          .node = *node,
                                          .started = CycleAnchor::now()};
  return memory;
}

Result<NodeMemory> NodeMemory::attach(const MemoryShape& shape, int control_fd, int data_fd,
                                      const std::array<int, kTiersMax>& tier_fds,
                                      SharedSegment::Descriptor descriptor) {
  NodeMemory memory;
  for (unsigned tier = 1; tier < kTiersMax; ++tier)
    memory.file_tiers_[tier] =
        FileTier(tier_fds[tier], std::uint64_t{shape.slabs(tier)} * kBlockBytes);
  constexpr std::uint64_t kSegmentUnit = 2 * 1024 * 1024;
  const MemoryMap map(shape);
  auto control = SharedSegment::attach(control_fd, round_up(map.end(), kSegmentUnit),
                                       pages_of_control(shape), descriptor);
  if (!control) {
    if (data_fd >= 0) sys::close(data_fd);
    return control.status();
  }
  memory.control_ = std::move(control.value());
  auto data = SharedSegment::attach(data_fd, round_up(bytes_of_data(shape), kSegmentUnit),
                                    static_cast<HugePages>(shape.huge_pages), descriptor);
  if (!data) return data.status();
  memory.data_ = std::move(data.value());
  const auto* identity = map.find<NodeIdentity>(memory.control_.base(), Table::kIdentity);
  if (identity->magic != kControlMagic || identity->layout_version != kLayoutVersion ||
      identity->layout_digest != map.digest()) {
    return Status(StatusCode::kIncompatible, "the node runs another version of Cairn: restart it");
  }
  memory.bind(shape, map);
  return memory;
}

// The bytes that were counted when they were fetched; 0 when the block has no mark.
std::size_t NodeMemory::take_mark(BucketIndex bucket) const {
  BlockDescriptor& descriptor = block(bucket);
  if (__builtin_expect(!descriptor.is_unread(), 1) || !descriptor.take_unread()) return 0;
  const std::size_t bytes = bucket_bytes(bucket);
  if (!in_memory(bucket)) fetches_.note_left_below(descriptor.fetched_by(), bytes);
  return bytes;
}

bool NodeMemory::note_used(BucketIndex bucket, bool was_late) const {
  const std::size_t bytes = take_mark(bucket);
  if (bytes != 0) fetches_.note_used(block(bucket).fetched_by(), bytes, was_late);
  return bytes != 0;
}

bool NodeMemory::note_unused(BucketIndex bucket) const {
  const std::size_t bytes = take_mark(bucket);
  if (bytes != 0) fetches_.note_evicted_unused(block(bucket).fetched_by(), bytes);
  return bytes != 0;
}

// The reader takes the bit before it looks at the ring, so it reads every event of a set bit.
void NodeMemory::tell(const AccessEvent& event) const {
  const std::uint16_t slot = event.owner.slot();
  const bool wakes = events_[slot].put(event);
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  std::atomic<std::uint64_t>& word = told_[slot / 64];
  if ((word.load(std::memory_order_relaxed) & bit) == 0)
    word.fetch_or(bit, std::memory_order_seq_cst);
  if (wakes) boards_.events->note_urgent();
}

}  // namespace cairn
