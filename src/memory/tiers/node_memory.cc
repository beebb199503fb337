// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/node_memory.h"

#include <bit>

#include "base/check.h"
#include "base/futex.h"

namespace cairn {
namespace {

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::uint32_t slabs_of(const MemoryShape& shape, unsigned tier) {
  return static_cast<std::uint32_t>(shape.tier_bytes[tier] / kBlockBytes);
}

std::uint64_t words_for_bits(std::uint64_t bits) { return bits / 64 + 1; }

}  // namespace

// Offsets of the tables in the control segment. Every section starts on its own page.
struct NodeMemory::Layout {
  std::uint64_t end = 0;
  std::uint64_t rules, journal, accounts, slots, generations, objects, object_lines, descriptions,
      holds, descriptors, block_lines, fetches, told, events, requests;
  std::uint64_t dirty_map;
  std::uint64_t slabs[kTiersMax], free_hint[kTiersMax], partial_hint[2];
  std::uint32_t object_count, bucket_count;
  std::uint64_t object_line_count, block_line_count;

  std::uint64_t section(std::uint64_t bytes) {
    const std::uint64_t offset = end;
    end += round_up(bytes, kPageBytes);
    return offset;
  }

  explicit Layout(const MemoryShape& shape) {
    section(sizeof(ControlHeader));
    rules = section(RuleTable::kBytes);
    journal = section(MoveJournal::kBytes);
    accounts = section(sizeof(AccountTable));
    slots = section(sizeof(ClientSlot) * shape.clients_max);
    generations = section(sizeof(std::uint32_t) * shape.clients_max);
    std::uint64_t file_slabs = 0;
    for (unsigned tier = 1; tier < kTiersMax; ++tier) file_slabs += slabs_of(shape, tier);
    const std::uint64_t memory_frames = std::uint64_t{slabs_of(shape, 0)} * kPagesPerBlock;
    const std::uint64_t buckets = 1 + memory_frames + file_slabs;
    bucket_count = static_cast<std::uint32_t>(buckets);
    object_count = shape.objects_max != 0
                       ? shape.objects_max
                       : static_cast<std::uint32_t>(memory_frames + file_slabs / 4 + 4096);
    objects = section(sizeof(Object) * object_count);
    // Seven slots a line: two thirds full when every record is in use.
    object_line_count = std::bit_ceil(std::uint64_t{object_count} / 5 + 1);
    object_lines = section(sizeof(HashLine) * object_line_count);
    descriptions = section(sizeof(OpenDescription) * shape.descriptions_max);
    holds = section(sizeof(Hold) * shape.holds_max);
    descriptors = section(sizeof(BlockDescriptor) * buckets);
    block_line_count = std::bit_ceil(buckets / 4 + 16);
    block_lines = section(sizeof(HashLine) * block_line_count);
    dirty_map = section(8 * words_for_bits(buckets));
    for (unsigned tier = 0; tier < kTiersMax; ++tier) {
      slabs[tier] = section(8 * std::uint64_t{slabs_of(shape, tier)});
      free_hint[tier] = section(8 * words_for_bits(slabs_of(shape, tier)));
    }
    for (auto& hint : partial_hint) hint = section(8 * words_for_bits(slabs_of(shape, 0)));
    fetches = section(FetchJournal::kBytes);
    told = section(8 * words_for_bits(shape.clients_max));
    events = section(sizeof(EventRing) * shape.clients_max);
    requests = section(RequestRing::kBytes);
  }
};

std::uint64_t NodeMemory::control_bytes(const MemoryShape& shape) { return Layout(shape).end; }

Status NodeMemory::bind(const MemoryShape& shape) {
  const Layout layout(shape);
  if (layout.end > control_.size_bytes()) {
    return Status(StatusCode::kIncompatible,
                  "the node's control segment is smaller than its tables");
  }
  shape_ = shape;
  std::byte* base = control_.base();
  header_ = reinterpret_cast<ControlHeader*>(base);
  rules_ = RuleTable(base + layout.rules);
  journal_ = MoveJournal(base + layout.journal);
  fetches_ = FetchJournal(base + layout.fetches);
  told_ = reinterpret_cast<std::atomic<std::uint64_t>*>(base + layout.told);
  events_ = reinterpret_cast<EventRing*>(base + layout.events);
  requests_ = RequestRing(reinterpret_cast<RequestRing::Table*>(base + layout.requests),
                          shape.requests_max, service());
  accounts_ = reinterpret_cast<AccountTable*>(base + layout.accounts);
  slots_ = reinterpret_cast<ClientSlot*>(base + layout.slots);
  descriptions_ = DescriptionTable(
      reinterpret_cast<OpenDescription*>(base + layout.descriptions), shape.descriptions_max,
      reinterpret_cast<Hold*>(base + layout.holds), shape.holds_max, &header_->description_cursor,
      &header_->hold_cursor, FullMark(&header_->descriptions_full), FullMark(&header_->holds_full));
  auto* descriptors = reinterpret_cast<BlockDescriptor*>(base + layout.descriptors);
  catalog_ = BlockCatalog(
      OwnerTable(reinterpret_cast<std::atomic<std::uint32_t>*>(base + layout.generations),
                 shape.clients_max),
      ObjectTable(reinterpret_cast<Object*>(base + layout.objects), layout.object_count,
                  HashLines(reinterpret_cast<HashLine*>(base + layout.object_lines),
                            layout.object_line_count),
                  &header_->object_cursor, &header_->objects_live, &header_->keys_unserved),
      BlockDirectory(HashLines(reinterpret_cast<HashLine*>(base + layout.block_lines),
                               layout.block_line_count),
                     descriptors, layout.bucket_count),
      DirtyBlocks(reinterpret_cast<std::atomic<std::uint64_t>*>(base + layout.dirty_map),
                  layout.bucket_count, &header_->dirty_bytes,
                  FlusherBell{&header_->flusher_wake, &header_->flusher_sleeping}));
  bucket_count_ = layout.bucket_count;
  bind_pools(shape, layout);
  return Status::ok();
}

void NodeMemory::bind_pools(const MemoryShape& shape, const Layout& layout) {
  const auto words_at = [base = control_.base()](std::uint64_t offset) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(base + offset);
  };
  std::uint32_t first_bucket = 1;
  tier_count_ = 1;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    BucketPool::Words words{};
    words.slabs = words_at(layout.slabs[tier]);
    words.free_hint = words_at(layout.free_hint[tier]);
    for (unsigned index = 0; index < kSizeClasses - 1; ++index) {
      words.partial_hint[index] = words_at(layout.partial_hint[index]);
    }
    words.free_slabs = &header_->free_slabs[tier];
    words.accounts = &accounts_->tiers[tier];
    BucketPool::Shape pool_shape;
    pool_shape.slab_count = slabs_of(shape, tier);
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

Result<NodeMemory> NodeMemory::create(const MemoryShape& shape,
                                      const std::array<std::string, kTiersMax>& pool_paths) {
  NodeMemory memory;
  const auto huge_pages = static_cast<HugePages>(shape.huge_pages);
  // The tables stay on small or transparent pages: hugetlb pages would be reserved for all of their
  // sparse size.
  const HugePages control_pages =
      huge_pages == HugePages::kNever ? HugePages::kNever : HugePages::kAdvise;
  auto control = SharedSegment::create("cairn-control", control_bytes(shape), control_pages);
  if (!control) return control.status();
  memory.control_ = std::move(control.value());
  auto data = SharedSegment::create("cairn-data", std::max<std::uint64_t>(shape.tier_bytes[0], 1),
                                    huge_pages);
  if (!data) return data.status();
  memory.data_ = std::move(data.value());
  for (unsigned tier = 1; tier < kTiersMax; ++tier) {
    if (shape.tier_bytes[tier] == 0) continue;
    auto file = tier == shape.swap_tier
                    ? FileTier::create_sparse(pool_paths[tier], shape.tier_bytes[tier])
                    : FileTier::create(pool_paths[tier], shape.tier_bytes[tier]);
    if (!file) return file.status();
    memory.file_tiers_[tier] = std::move(file.value());
  }
  CAIRN_RETURN_IF_ERROR(memory.bind(shape));
  ControlHeader& header = memory.header();
  header.layout_version = kLayoutVersion;
  header.shape = shape;
  header.shape.huge_pages = static_cast<std::uint32_t>(memory.data_.huge_pages());
  memory.shape_ = header.shape;
  header.service_pid.store(sys::getpid());
  header.started = CycleAnchor::now();
  for (unsigned tier = 0; tier < memory.tier_count_; ++tier) memory.pools_[tier].format();
  header.magic = kControlMagic;
  return memory;
}

Result<NodeMemory> NodeMemory::attach(const MemoryShape& shape, int control_fd, int data_fd,
                                      const std::array<int, kTiersMax>& tier_fds) {
  NodeMemory memory;
  for (unsigned tier = 1; tier < kTiersMax; ++tier)
    memory.file_tiers_[tier] = FileTier(tier_fds[tier]);
  constexpr std::uint64_t kSegmentUnit = 2 * 1024 * 1024;
  const auto huge_pages = static_cast<HugePages>(shape.huge_pages);
  const HugePages control_pages =
      huge_pages == HugePages::kNever ? HugePages::kNever : HugePages::kAdvise;
  auto control = SharedSegment::attach(control_fd, round_up(control_bytes(shape), kSegmentUnit),
                                       control_pages);
  if (!control) {
    if (data_fd >= 0) sys::close(data_fd);
    return control.status();
  }
  memory.control_ = std::move(control.value());
  auto data = SharedSegment::attach(
      data_fd, round_up(std::max<std::uint64_t>(shape.tier_bytes[0], 1), kSegmentUnit), huge_pages);
  if (!data) return data.status();
  memory.data_ = std::move(data.value());
  const auto* header = reinterpret_cast<const ControlHeader*>(memory.control_.base());
  if (header->magic != kControlMagic || header->layout_version != kLayoutVersion) {
    return Status(StatusCode::kIncompatible, "the node runs another version of Cairn: restart it");
  }
  CAIRN_RETURN_IF_ERROR(memory.bind(shape));
  return memory;
}

// As FlusherBell::ring().
void NodeMemory::wake_organizer() const {
  if (header_->organizer_sleeping.load(std::memory_order_seq_cst) == 0) return;
  header_->organizer_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(header_->organizer_wake);
}

// The bytes that were counted when they were fetched; 0 when the block has no mark.
std::size_t NodeMemory::take_mark(BucketIndex bucket) const {
  BlockDescriptor& descriptor = block(bucket);
  if (__builtin_expect(!descriptor.is_unread(), 1) || !descriptor.take_unread()) return 0;
  if (in_memory(bucket)) return descriptor.bucket_bytes();
  fetches_.note_left_below(descriptor.fetched_by(), kBlockBytes);
  return kBlockBytes;
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

// The reader takes the bit before it looks at the ring: who finds it set may rely on being read.
void NodeMemory::tell(const AccessEvent& event) const {
  const std::uint16_t slot = event.owner.slot();
  const bool wakes = events_[slot].put(event);
  const std::uint64_t bit = std::uint64_t{1} << (slot % 64);
  std::atomic<std::uint64_t>& word = told_[slot / 64];
  if ((word.load(std::memory_order_relaxed) & bit) == 0)
    word.fetch_or(bit, std::memory_order_seq_cst);
  if (!wakes) return;
  if (header_->events_are_urgent.load(std::memory_order_relaxed) == 0)
    header_->events_are_urgent.store(1, std::memory_order_seq_cst);
  if (header_->events_sleeping.load(std::memory_order_seq_cst) == 0) return;
  // One of them is enough to wake it.
  if (header_->events_sleeping.exchange(0) == 0) return;
  header_->events_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(header_->events_wake);
}

void NodeMemory::note_slabs_used(std::uint32_t past) const {
  std::uint32_t seen = header_->used_slabs.load(std::memory_order_relaxed);
  while (seen < past && !header_->used_slabs.compare_exchange_weak(seen, past)) {
  }
  const bool is_well_ahead =
      header_->warm_slabs.load(std::memory_order_relaxed) > past + kWarmSlabsMin / 2;
  if (seen >= past || is_well_ahead) return;
  header_->warmer_wake.fetch_add(1, std::memory_order_acq_rel);
  futex_wake(header_->warmer_wake);
}

}  // namespace cairn
