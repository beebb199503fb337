// SPDX-License-Identifier: Apache-2.0
#include "organizer/organizer.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"
#include "base/futex.h"
#include "base/system_call.h"
#include "flush/dirty_accounting.h"

namespace cairn {
namespace {

bool has_bytes(const BlockDescriptor& block) {
  const BlockState state = block.state.load(std::memory_order_relaxed);
  return state == BlockState::kClean || state == BlockState::kDirty ||
         state == BlockState::kFlushing;
}

std::uint32_t bucket_bytes(const NodeMemory& memory, BucketIndex bucket) {
  if (!memory.in_memory(bucket)) return kBlockBytes;
  return static_cast<std::uint32_t>(
      bytes_in(static_cast<SizeClass>(memory.block(bucket).size_class)));
}

// Even a tiny tier keeps so many free.
constexpr std::uint32_t kSlabsMin = 4;

// For so long, accounts above their share get nothing of what others had to give in their place.
constexpr std::int64_t kStrictNanos = 1'000'000'000;

void unpin(BlockDescriptor& block) { block.flusher.store(0, std::memory_order_release); }

}  // namespace

TierLimits limits_for(std::uint32_t slabs, std::uint32_t low_percent, std::uint32_t high_percent) {
  TierLimits limits;
  const auto share = [slabs](std::uint32_t percent) {
    return static_cast<std::uint32_t>(std::uint64_t{slabs} * percent / 100);
  };
  limits.low_slabs = std::max(share(low_percent), std::min(kSlabsMin, slabs / 4));
  limits.high_slabs =
      std::max(share(high_percent), limits.low_slabs + std::min(kSlabsMin, slabs / 4));
  if (slabs > 0) limits.high_slabs = std::min(limits.high_slabs, slabs - 1);
  limits.low_slabs = std::min(limits.low_slabs, limits.high_slabs);
  return limits;
}

Organizer::Organizer(const NodeMemory& memory, const PlacementPolicy& placement,
                     const ReplacementPolicy& replacement, BatchWriter& writer,
                     std::array<TierLimits, kTiersMax> limits)
    : memory_(memory),
      placement_(placement),
      replacement_(replacement),
      writer_(writer),
      limits_(limits) {
  moves_.reserve(kMovesMax);
}

Organizer::~Organizer() {
  if (staging_ != nullptr) sys::munmap(staging_, kMovesMax * kBlockBytes);
}

// What is reserved is no room to be kept: the marks are of what is left for everybody.
TierLimits Organizer::limits_of(TierId tier) const {
  const TierLimits& whole = limits_[raw(tier)];
  const BucketPool& pool = memory_.pool(tier);
  const std::uint32_t reserved = pool.accounts().reserved_slabs();
  if (reserved == 0) return whole;
  const std::uint32_t slabs = pool.slab_count();
  const std::uint32_t common = slabs - std::min(reserved, slabs);
  const auto part = [&](std::uint32_t mark) {
    return static_cast<std::uint32_t>(std::uint64_t{mark} * common / slabs);
  };
  const std::uint32_t least = std::min(kSlabsMin, common / 4);
  TierLimits limits;
  limits.low_slabs = std::max(part(whole.low_slabs), least);
  limits.high_slabs = std::max(part(whole.high_slabs), limits.low_slabs + least);
  if (common > 0) limits.high_slabs = std::min(limits.high_slabs, common - 1);
  limits.low_slabs = std::min(limits.low_slabs, limits.high_slabs);
  return limits;
}

// Tells the clients who may take what is left below the low mark.
void Organizer::announce(TierId tier, const TierUse& use, const TierLimits& limits) const {
  const BucketPool& pool = memory_.pool(tier);
  TierAccounts& accounts = pool.accounts();
  memory_.header().low_slabs[raw(tier)].store(limits.low_slabs, std::memory_order_relaxed);
  if (!is_contended(use)) {
    accounts.share_floor.store(0, std::memory_order_relaxed);
    return;
  }
  const std::uint32_t shared = pool.slab_count() - std::min(limits.low_slabs, pool.slab_count());
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    accounts.accounts[index].share.store(fair_share(use, static_cast<AccountId>(index), shared),
                                         std::memory_order_relaxed);
  }
  const bool is_strict = monotonic_ns() < strict_until_ns_[raw(tier)];
  accounts.share_floor.store(is_strict ? UINT32_MAX : limits.low_slabs, std::memory_order_relaxed);
}

RoomMade Organizer::make_room(Actor& actor, TierId tier) {
  // Small buckets free their slab only when the whole slab is empty, so one round may not be
  // enough.
  constexpr int kRounds = 4;
  RoomMade made;
  const BucketPool& pool = memory_.pool(tier);
  if (pool.slab_count() == 0) return made;
  const TierLimits limits = limits_of(tier);
  TierUse use = use_of(memory_.accounts(), tier);
  announce(tier, use, limits);
  if (pool.common_slabs() >= limits.low_slabs) return made;
  bool clean_only = false;
  for (int round = 0; round < kRounds && pool.common_slabs() < limits.high_slabs; ++round) {
    const std::uint32_t before = made.dropped + made.demoted;
    if (!clean_only) made.dirty_in_the_way = 0;
    use = use_of(memory_.accounts(), tier);
    evict_by_shares(actor, tier, &use, limits.high_slabs, clean_only, &made);
    if (made.dropped + made.demoted != before) continue;
    if (clean_only || made.dirty_in_the_way == 0 || !is_contended(use)) break;
    // Who has more than its share can give nothing before it is stored. The others go on with what
    // they have themselves, and it gets none of that.
    clean_only = true;
    strict_until_ns_[raw(tier)] = monotonic_ns() + kStrictNanos;
    announce(tier, use, limits);
  }
  made.is_short = pool.common_slabs() < limits.low_slabs;
  return made;
}

void Organizer::evict_by_shares(Actor& actor, TierId tier, TierUse* use, std::uint32_t high,
                                bool clean_only, RoomMade* made) {
  const BucketPool& pool = memory_.pool(tier);
  collect(tier, clean_only, use);
  const std::uint32_t free = pool.common_slabs();
  const auto gives = slabs_to_give(*use, high - std::min(high, free));
  for (unsigned index = 0; index < kAccountsMax; ++index)
    bytes_to_give_[index] = std::uint64_t{gives[index]} * kBlockBytes;
  std::span<BlockView> rest = candidates_;
  const auto take_out = [&rest](auto&& belongs) {
    const auto past = std::partition(rest.begin(), rest.end(), belongs);
    const auto count = static_cast<std::size_t>(past - rest.begin());
    const std::span<BlockView> part = rest.first(count);
    rest = rest.subspan(count);
    return part;
  };
  if (!is_contended(*use)) {
    const auto givers = take_out(
        [this](const BlockView& block) { return bytes_to_give_[raw(block.account)] != 0; });
    evict(actor, tier, givers, high, made);
    return;
  }
  for (unsigned index = 0; index < kAccountsMax && !rest.empty(); ++index) {
    if (gives[index] == 0) continue;
    const auto own =
        take_out([index](const BlockView& block) { return raw(block.account) == index; });
    evict(actor, tier, own, std::min(high, pool.common_slabs() + gives[index]), made);
  }
}

// Every block that may leave, and how much of each account that is.
void Organizer::collect(TierId tier, bool clean_only, TierUse* use) {
  candidates_.clear();
  std::array<std::uint64_t, kAccountsMax> movable_bytes{};
  const BucketPool& pool = memory_.pool(tier);
  pool.for_each_bucket([&](BucketIndex bucket) {
    const BlockDescriptor& block = memory_.block(bucket);
    if (block.object_index() == ObjectIndex::kNone || block.state.load() == BlockState::kFree)
      return;
    const ObjectHandling handling = memory_.objects().at(block.object_index()).handling();
    BlockView view;
    view.dirty = block.dirty_pages.load(std::memory_order_relaxed) != 0;
    if (handling.pinned || (clean_only && view.dirty)) return;
    view.bucket = bucket;
    view.account = pool.account_of(bucket);
    // What lies above the tier where it belongs leaves first.
    view.priority = handling.home && tier < *handling.home ? 0 : handling.priority;
    view.recency_ms = block.recency_ms.load(std::memory_order_relaxed);
    view.frequency = block.frequency.load(std::memory_order_relaxed);
    view.bytes = bucket_bytes(memory_, bucket);
    movable_bytes[raw(view.account)] += view.bytes;
    candidates_.push_back(view);
  });
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    (*use)[index].movable =
        static_cast<std::uint32_t>((movable_bytes[index] + kBlockBytes - 1) / kBlockBytes);
  }
}

// Until `enough` slabs are free for everybody. Victims that cannot leave now (dirty without a tier
// below, or in use) are passed over for the next best, so that a few hot or dirty blocks at the old
// end do not stop the eviction.
void Organizer::evict(Actor& actor, TierId tier, std::span<BlockView> candidates,
                      std::uint32_t enough, RoomMade* made) {
  const BucketPool& pool = memory_.pool(tier);
  ReplacementRequest request;
  request.bytes_wanted =
      std::uint64_t{enough - std::min(enough, pool.common_slabs())} * kBlockBytes;
  request.now_ms = monotonic_coarse_ms();
  const std::size_t count = replacement_.choose(candidates, request);
  const std::size_t most = std::min(candidates.size(), std::max(count * 4, std::size_t{256}));
  // Beyond the policy's choice the rest stands in no promised order; oldest-first leaves it sorted.
  for (std::size_t at = 0; at < most; ++at) {
    if (at >= count && pool.common_slabs() + moves_.size() >= enough) break;
    const AccountId account = candidates[at].account;
    std::uint64_t& left_to_give = bytes_to_give_[raw(account)];
    // It may have given away something itself meanwhile.
    const std::uint32_t reserved = pool.accounts().reserved(account);
    const bool is_reserved = reserved != 0 && pool.accounts().used(account) <= reserved;
    if (left_to_give < candidates[at].bytes || is_reserved) continue;
    if (handle_victim(actor, candidates[at], tier, made)) left_to_give -= candidates[at].bytes;
    if (moves_.size() == kMovesMax) made->demoted += finish_moves(actor);
  }
  made->demoted += finish_moves(actor);
}

std::uint32_t Organizer::raise(Actor& actor, ObjectIndex object, TierId target) {
  std::uint32_t raised = 0;
  for (unsigned tier = raw(target) + 1; tier < memory_.tier_count(); ++tier) {
    memory_.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
      const BlockDescriptor& block = memory_.block(bucket);
      if (block.object_index() != object || !has_bytes(block)) return;
      if (!pin(actor, bucket, target, PlacementReason::kPromoted)) return;
      if (moves_.size() == kMovesMax) raised += finish_moves(actor);
    });
  }
  return raised + finish_moves(actor);
}

// Whether it leaves, or is about to.
bool Organizer::handle_victim(Actor& actor, const BlockView& victim, TierId tier, RoomMade* made) {
  PlacementRequest request;
  request.bytes = kBlockBytes;
  request.fastest = static_cast<TierId>(raw(tier) + 1);
  // Nothing to carry: whoever began to fill the block met an error or died.
  const bool is_empty = !has_bytes(memory_.block(victim.bucket));
  const ObjectIndex object = memory_.block(victim.bucket).object_index();
  const BufferingMode mode = memory_.objects().at(object).handling().mode;
  const auto target =
      is_empty ? std::nullopt : placement_.choose(views(mode, victim.account), request);
  if (target && pin(actor, victim.bucket, *target, PlacementReason::kDemoted)) return true;
  if (memory_.block(victim.bucket).dirty_pages.load(std::memory_order_relaxed) != 0) {
    ++made->dirty_in_the_way;
  } else if (!target && drop(actor, victim.bucket)) {
    ++made->dropped;
    return true;
  }
  return false;
}

// With the room that there is for an account.
std::vector<TierView> Organizer::views(BufferingMode mode, AccountId account) const {
  std::vector<TierView> tiers;
  for (unsigned index = 0; index < memory_.tiers_for(mode); ++index) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(index));
    TierView view;
    view.id = static_cast<TierId>(index);
    view.capacity_bytes = std::uint64_t{pool.slab_count()} * kBlockBytes;
    const std::uint32_t free = pool.accounts().grant(account, pool.slab_count(), pool.free_slabs());
    view.free_bytes = std::uint64_t{free} * kBlockBytes;
    tiers.push_back(view);
  }
  return tiers;
}

// Step 1. False when the block cannot move now.
bool Organizer::pin(Actor& actor, BucketIndex from, TierId target, PlacementReason reason) {
  BlockDescriptor& block = memory_.block(from);
  if (!block.try_lock(actor.self)) return false;
  const bool movable = block.object_index() != ObjectIndex::kNone && has_bytes(block) &&
                       !block.is_flushing(actor.owners()) &&
                       actor.object(block.object_index()).through.load() == 0 &&
                       memory_.directory().find(block.object_index(), block.block_number()) == from;
  if (!movable) {
    actor.unlock(block, false);
    return false;
  }
  Lease::Fresh fresh;
  const AccountId account = memory_.pool(memory_.tier_of(from)).account_of(from);
  const BucketIndex to =
      actor.leases[raw(target)].take(memory_.pool(target), SizeClass::k64KiB, actor.self,
                                     actor.owners(), kMovesMax, &fresh, account);
  if (to == BucketIndex::kNone) {
    actor.unlock(block, false);
    return false;
  }
  Move move;
  move.from = from;
  move.to = to;
  move.sequence = BlockDescriptor::sequence_in(block.word.load(std::memory_order_relaxed));
  move.length = bucket_bytes(memory_, from);
  move.reason = reason;
  block.flusher.store(actor.self.bits(), std::memory_order_release);
  actor.unlock(block, false);
  moves_.push_back(move);
  return true;
}

const void* Organizer::bytes_of(const Move& move, std::size_t slot) {
  if (memory_.in_memory(move.from)) return memory_.bytes(move.from);
  if (staging_ == nullptr) {
    void* mapped = sys::mmap(nullptr, kMovesMax * kBlockBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys::is_error(mapped)) return nullptr;
    staging_ = static_cast<std::byte*>(mapped);
  }
  std::byte* target = staging_ + slot * kBlockBytes;
  const TierId tier = memory_.tier_of(move.from);
  const int error = memory_.file_tier(tier).read_pages(
      memory_.pool(tier).offset_of_bucket(move.from), target, move.length);
  return error < 0 ? nullptr : target;
}

// Step 2 of a move into memory.
bool Organizer::carry_up(const Move& move) {
  const TierId tier = memory_.tier_of(move.from);
  const std::uint64_t offset = memory_.pool(tier).offset_of_bucket(move.from);
  return memory_.file_tier(tier).read_pages(offset, memory_.bytes(move.to), move.length) == 0;
}

// Steps 2 and 3 for all pinned blocks. Returns how many have moved.
std::uint32_t Organizer::finish_moves(Actor& actor) {
  std::uint32_t moved = 0;
  std::vector<BatchWrite> writes;
  std::vector<Move> written;
  for (std::size_t slot = 0; slot < moves_.size(); ++slot) {
    const Move& move = moves_[slot];
    if (memory_.in_memory(move.to)) {
      if (carry_up(move) && commit(actor, move)) {
        ++moved;
      } else {
        give_up(actor, move, true);
      }
      continue;
    }
    const void* bytes = bytes_of(move, slot);
    if (bytes == nullptr) {
      give_up(actor, move, true);
      continue;
    }
    const TierId target = memory_.tier_of(move.to);
    writes.push_back(BatchWrite{&memory_.file_tier(target),
                                memory_.pool(target).offset_of_bucket(move.to), bytes, move.length,
                                0});
    written.push_back(move);
  }
  moves_.clear();
  if (!writes.empty()) writer_.write_all(writes);
  for (std::size_t at = 0; at < written.size(); ++at) {
    if (writes[at].result == 0 && commit(actor, written[at])) {
      ++moved;
    } else {
      give_up(actor, written[at], true);
    }
  }
  return moved;
}

// Step 3. False when the block changed meanwhile: it is then still pinned and unlocked.
bool Organizer::commit(Actor& actor, const Move& move) {
  BlockDescriptor& old = memory_.block(move.from);
  BlockDescriptor& fresh = memory_.block(move.to);
  actor.lock(old);
  if (BlockDescriptor::sequence_in(old.word.load(std::memory_order_relaxed)) != move.sequence) {
    actor.unlock(old, false);
    return false;
  }
  const ObjectIndex object = old.object_index();
  const std::uint16_t dirty = old.dirty_pages.load();
  fresh.set_identity(object, old.block_number());
  fresh.flusher.store(0, std::memory_order_relaxed);
  fresh.recency_ms.store(old.recency_ms.load(), std::memory_order_relaxed);
  fresh.frequency.store(old.frequency.load(), std::memory_order_relaxed);
  fresh.placed_ms.store(monotonic_coarse_ms(), std::memory_order_relaxed);
  fresh.predecessor.store(0, std::memory_order_relaxed);
  fresh.reason.store(static_cast<std::uint8_t>(move.reason), std::memory_order_relaxed);
  fresh.dirty_since_ms.store(old.dirty_since_ms.load(), std::memory_order_relaxed);
  fresh.enter(BlockState::kFilling);
  fresh.valid_pages.store(old.valid_pages.load(), std::memory_order_relaxed);
  fresh.dirty_pages.store(dirty, std::memory_order_relaxed);
  fresh.enter(dirty != 0 ? BlockState::kDirty : BlockState::kClean);
  if (dirty != 0) note_dirty_block_moved(actor, move.from, move.to);
  memory_.directory().move(move.from, move.to, actor.self, actor.owners());
  actor.unlock(fresh, true);
  unpin(old);
  memory_.pool(memory_.tier_of(move.from)).release(move.from, actor.self);
  futex_wake(old.flusher);
  const bool is_up = move.reason == PlacementReason::kPromoted;
  actor.count(is_up ? Counter::kPromotedBlocks : Counter::kDemotedBlocks, 1);
  return true;
}

void Organizer::give_up(Actor& actor, const Move& move, bool target_too) {
  BlockDescriptor& old = memory_.block(move.from);
  actor.lock(old);
  unpin(old);
  actor.unlock(old, false);
  futex_wake(old.flusher);
  if (target_too) memory_.pool(memory_.tier_of(move.to)).release(move.to, actor.self);
}

bool Organizer::drop(Actor& actor, BucketIndex bucket) {
  BlockDescriptor& block = memory_.block(bucket);
  if (!block.try_lock(actor.self)) return false;
  const bool droppable =
      block.object_index() != ObjectIndex::kNone && block.state.load() != BlockState::kFree &&
      block.dirty_pages.load() == 0 && !block.is_flushing(actor.owners()) &&
      memory_.directory().find(block.object_index(), block.block_number()) == bucket;
  if (!droppable) {
    actor.unlock(block, false);
    return false;
  }
  const ObjectIndex object = block.object_index();
  memory_.directory().withdraw(bucket, actor.self, actor.owners());
  actor.object(object).blocks.fetch_sub(1, std::memory_order_acq_rel);
  memory_.pool(memory_.tier_of(bucket)).release(bucket, actor.self);
  actor.count(Counter::kEvictedBlocks, 1);
  return true;
}

}  // namespace cairn
