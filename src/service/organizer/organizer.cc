// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/organizer.h"

#include <algorithm>
#include <span>

#include "base/check.h"
#include "base/clock.h"
#include "memory/tiers/promotion_bar.h"
#include "service/organizer/drop_clean.h"

namespace cairn {
namespace {

std::uint32_t mean_frequency(std::span<const BlockView> blocks) {
  CAIRN_CHECK(!blocks.empty());
  std::uint64_t sum = 0;
  for (const BlockView& block : blocks) sum += block.frequency;
  return static_cast<std::uint32_t>(sum / blocks.size());
}

// Even a tiny tier keeps so many free.
constexpr std::uint32_t kSlabsMin = 4;

// The blocks that one operation writes to a device.
constexpr std::uint32_t kStretchBlocks = Lease::kSlabsMax;
static_assert(kStretchBlocks <= MoveBatch::kBlocksMax);

// For so long, accounts above their share get nothing of what others had to give in their place.
constexpr std::int64_t kStrictNanos = 1'000'000'000;

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
  CAIRN_CHECK(limits.high_slabs < std::max(slabs, 1U));
  return limits;
}

Organizer::Organizer(const NodeMemory& memory, const PlacementPolicy& placement,
                     const ReplacementPolicy& replacement, BatchWriter& writer,
                     std::array<TierLimits, kTiersMax> limits)
    : memory_(memory),
      placement_(placement),
      replacement_(replacement),
      limits_(limits),
      batch_(memory, writer) {}

// Reserved room is not room to keep free: the marks are for the room that is left for everybody.
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
  memory_.organizer_board().low_slabs[raw(tier)].store(limits.low_slabs, std::memory_order_relaxed);
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

RoomMade Organizer::make_room(Actor& actor, TierId tier, std::uint32_t wanted) {
  const BucketPool& pool = memory_.pool(tier);
  // service/capacity/tier_watch.h empties a tier that is out of service.
  if (pool.slab_count() == 0 || !memory_.takes_blocks(tier)) return {};
  const TierLimits limits = limits_of(tier);
  announce(tier, use_of(memory_.accounts(), tier), limits);
  if (pool.common_slabs() >= limits.low_slabs) return {};
  RoomMade made =
      approach(actor, Goal{tier, std::max(limits.high_slabs, wanted), true, wanted != 0});
  made.is_short = pool.common_slabs() < limits.low_slabs;
  if (tier == TierId::kMemory) made.left_memory = made.dropped + made.demoted;
  return made;
}

RoomMade Organizer::make_headroom(Actor& actor, TierId tier, std::uint32_t slabs) {
  return approach(actor, Goal{tier, slabs, false, false});
}

RoomMade Organizer::approach(Actor& actor, const Goal& goal) {
  // Small buckets free their slab only when the whole slab is empty, so one round may not be
  // enough.
  constexpr int kRounds = 4;
  RoomMade made;
  const BucketPool& pool = memory_.pool(goal.tier);
  bool clean_only = false;
  for (int round = 0; round < kRounds && pool.common_slabs() < goal.slabs; ++round) {
    const std::uint32_t before = made.dropped + made.demoted;
    if (!clean_only) made.dirty_in_the_way = 0;
    TierUse use = use_of(memory_.accounts(), goal.tier);
    evict_by_shares(actor, goal, &use, clean_only, &made);
    if (made.dropped + made.demoted != before) continue;
    if (clean_only || made.dirty_in_the_way == 0 || !is_contended(use)) break;
    // An account above its share can give nothing before its data is stored. The others go on with
    // what they have themselves, and it gets none of that.
    clean_only = true;
    strict_until_ns_[raw(goal.tier)] = monotonic_ns() + kStrictNanos;
    announce(goal.tier, use, limits_of(goal.tier));
  }
  return made;
}

void Organizer::evict_by_shares(Actor& actor, const Goal& goal, TierUse* use, bool clean_only,
                                RoomMade* made) {
  const BucketPool& pool = memory_.pool(goal.tier);
  const std::uint32_t high = goal.slabs;
  collect(goal.tier, clean_only, use);
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
    evict(actor, goal, givers, made);
    return;
  }
  for (unsigned index = 0; index < kAccountsMax && !rest.empty(); ++index) {
    if (gives[index] == 0) continue;
    const auto own =
        take_out([index](const BlockView& block) { return raw(block.account) == index; });
    Goal part = goal;
    part.slabs = std::min(high, pool.common_slabs() + gives[index]);
    evict(actor, part, own, made);
  }
}

// Every block that may leave, and how much of each account that is.
void Organizer::collect(TierId tier, bool clean_only, TierUse* use) {
  candidates_.clear();
  std::array<std::uint64_t, kAccountsMax> movable_bytes{};
  const BucketPool& pool = memory_.pool(tier);
  pool.for_each_bucket([&](BucketIndex bucket) {
    const BlockDescriptor& block = memory_.block(bucket);
    if (block.object_index() == ObjectIndex::kNone || block.state() == BlockState::kFree) return;
    const ObjectHandling handling = memory_.objects().at(block.object_index()).handling();
    const PartHandling part = memory_.part_of(handling, block.block_number());
    BlockView view;
    view.dirty = block.dirty_pages() != 0;
    if (part.pinned.value_or(handling.pinned) || (clean_only && view.dirty)) return;
    view.bucket = bucket;
    view.object = block.object_index();
    view.number = block.block_number();
    view.is_unread = block.is_unread();
    view.account = pool.account_of(bucket);
    // Blocks above the tier where they belong leave first.
    view.priority = is_above_home(block, tier) ? 0 : part.priority.value_or(handling.priority);
    view.recency_ms = block.recency_ms();
    view.placed_ms = block.placed_ms();
    view.frequency = block.frequency();
    view.bytes = memory_.bucket_bytes(bucket);
    movable_bytes[raw(view.account)] += view.bytes;
    candidates_.push_back(view);
  });
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    (*use)[index].movable =
        static_cast<std::uint32_t>((movable_bytes[index] + kBlockBytes - 1) / kBlockBytes);
  }
}

// Victims that cannot leave now (dirty without a tier below, or in use) are passed over for the
// next best, so that a few hot or dirty blocks at the old end do not stop the eviction.
void Organizer::evict(Actor& actor, const Goal& goal, std::span<BlockView> candidates,
                      RoomMade* made) {
  const BucketPool& pool = memory_.pool(goal.tier);
  const std::uint32_t enough = goal.slabs;
  ReplacementRequest request;
  request.tier = goal.tier;
  request.bytes_wanted =
      std::uint64_t{enough - std::min(enough, pool.common_slabs())} * kBlockBytes;
  request.now_ms = monotonic_coarse_ms();
  const std::size_t count = replacement_.choose(candidates, request);
  if (goal.tier == TierId::kMemory && count > 0) {
    PromotionBar::raise(memory_.organizer_board(), mean_frequency(candidates.first(count)),
                        request.now_ms);
  }
  const std::size_t most = std::min(candidates.size(), std::max(count * 4, std::size_t{256}));
  // Beyond the policy's choice the rest stands in no promised order; oldest-first leaves it sorted.
  for (std::size_t at = 0; at < most; ++at) {
    if (at >= count && pool.common_slabs() + batch_.size() >= enough) break;
    const AccountId account = candidates[at].account;
    std::uint64_t& left_to_give = bytes_to_give_[raw(account)];
    // It may have given away something itself meanwhile.
    const std::uint32_t reserved = pool.accounts().reserved(account);
    const bool is_reserved = reserved != 0 && pool.accounts().used(account) <= reserved;
    if (left_to_give < candidates[at].bytes || is_reserved) continue;
    if (handle_victim(actor, candidates[at], goal, made)) left_to_give -= candidates[at].bytes;
    if (batch_.is_full()) made->demoted += batch_.advance(actor);
  }
  made->demoted += batch_.finish(actor);
}

// Finds what is to rise, the hottest file's first.
void Organizer::collect_rising(std::span<const RisingFile> files) {
  rising_.clear();
  for (std::uint32_t file = 0; file < files.size(); ++file) {
    const Object& object = memory_.objects().at(files[file].object);
    const ObjectHandling handling = object.handling();
    std::uint32_t left = object.blocks.load(std::memory_order_acquire);
    // Further than that nobody looks, whatever size stands there.
    constexpr std::uint64_t kBlocksLookedAt = std::uint64_t{1} << 24;
    const std::uint64_t end = std::min(object.size.load() / kBlockBytes + 1, kBlocksLookedAt);
    for (std::uint64_t number = 0; number < end && left > 0; ++number) {
      const auto block = static_cast<BlockNumber>(number);
      const BucketIndex bucket = memory_.directory().find(files[file].object, block);
      if (bucket == BucketIndex::kNone) continue;
      --left;
      if (memory_.tier_of(bucket) <= files[file].home || !memory_.block(bucket).has_bytes())
        continue;
      // Blocks that a rule has put into a tier stay there.
      const PartHandling part = memory_.part_of(handling, block);
      if (part.home || part.pinned.value_or(handling.pinned)) continue;
      rising_.push_back(Rising{bucket, file});
    }
  }
}

std::uint32_t Organizer::raise(Actor& actor, std::span<const RisingFile> files) {
  collect_rising(files);
  std::array<std::size_t, kTiersMax> wanted{};
  for (const Rising& block : rising_) ++wanted[raw(files[block.file].home)];
  // The room that is kept free is for writes: taking it would only push blocks down again.
  std::array<std::size_t, kTiersMax> room{};
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    const auto id = static_cast<TierId>(tier);
    if (wanted[tier] == 0) continue;
    const auto spare = [&] {
      const std::uint32_t free = memory_.pool(id).common_slabs();
      return std::size_t{free > limits_[tier].low_slabs ? free - limits_[tier].low_slabs : 0};
    };
    if (spare() < wanted[tier]) lower(actor, id, wanted[tier] - spare());
    room[tier] = spare();
  }
  std::uint32_t raised = 0;
  for (const Rising& block : rising_) {
    const TierId home = files[block.file].home;
    if (room[raw(home)] == 0) continue;
    if (!batch_.add(actor, block.bucket, home, PlacementReason::kHot)) continue;
    --room[raw(home)];
    if (batch_.is_full()) raised += batch_.advance(actor);
  }
  return raised + batch_.finish(actor);
}

void Organizer::lower(Actor& actor, TierId tier, std::size_t blocks) {
  TierUse use{};
  collect(tier, false, &use);
  std::erase_if(candidates_, [&](const BlockView& view) {
    return !is_above_home(memory_.block(view.bucket), tier);
  });
  ReplacementRequest request;
  request.tier = tier;
  request.bytes_wanted = blocks * kBlockBytes;
  request.now_ms = monotonic_coarse_ms();
  const std::size_t count = replacement_.choose(candidates_, request);
  RoomMade made;
  for (std::size_t at = 0; at < count; ++at) {
    (void)handle_victim(actor, candidates_[at], Goal{tier, 0, true, false}, &made);
    if (batch_.is_full()) made.demoted += batch_.advance(actor);
  }
  (void)batch_.finish(actor);
  actor.drop_leases();
}

bool Organizer::is_above_home(const BlockDescriptor& block, TierId tier) const {
  const ObjectHandling handling = memory_.objects().at(block.object_index()).handling();
  const PartHandling part = memory_.part_of(handling, block.block_number());
  const auto home = part.home ? part.home : handling.home;
  return home && tier < *home;
}

// Whether a block is dropped although there is room below. Only what the backing store has may be,
// of which nobody has said that it is to be kept: by a stage-in, a priority or a reservation, or by
// having it fetched ahead.
bool Organizer::is_turned_away(const BlockView& victim, TierId target, const Goal& goal) const {
  const BlockDescriptor& block = memory_.block(victim.bucket);
  const bool is_clean = block.dirty_pages() == 0;
  if (!goal.may_drop || !is_clean || victim.is_unread || is_above_home(block, goal.tier))
    return false;
  const auto reason = block.reason();
  if (reason == PlacementReason::kStaged || victim.priority > ObjectHandling::kPriorityNormal)
    return false;
  const bool is_scratch =
      memory_.objects().at(victim.object).handling().mode == BufferingMode::kScratch;
  const bool is_reserved = memory_.pool(target).accounts().unused(victim.account) != 0;
  if (is_scratch || is_reserved) return false;
  return !replacement_.admits(victim, goal.tier, target);
}

// Whether it leaves, or is about to.
bool Organizer::handle_victim(Actor& actor, const BlockView& victim, const Goal& goal,
                              RoomMade* made) {
  // Nothing to carry: the process that began to fill the block met an error or died.
  const bool is_empty = !memory_.block(victim.bucket).has_bytes();
  const ObjectIndex object = memory_.block(victim.bucket).object_index();
  const BufferingMode mode = memory_.objects().at(object).handling().mode;
  const PlacementReason reason = is_above_home(memory_.block(victim.bucket), goal.tier)
                                     ? PlacementReason::kAboveHome
                                 : goal.may_drop ? PlacementReason::kDemoted
                                                 : PlacementReason::kHeadroom;
  const auto target = is_empty ? std::nullopt : target_for(victim, mode, goal);
  if (target && is_turned_away(victim, *target, goal)) {
    const bool is_gone = drop_clean(actor, victim.bucket, PlacementReason::kNotAdmitted);
    if (is_gone) ++made->dropped;
    return is_gone;
  }
  if (target && batch_.add(actor, victim.bucket, *target, reason)) return true;
  if (memory_.block(victim.bucket).dirty_pages() != 0) {
    ++made->dirty_in_the_way;
  } else if (goal.may_drop && !target && drop_clean(actor, victim.bucket, reason)) {
    ++made->dropped;
    return true;
  }
  return false;
}

// Where a victim goes. With devices at work side by side, each takes a stretch of neighbours as
// large as an operation of its own.
std::optional<TierId> Organizer::target_for(const BlockView& victim, BufferingMode mode,
                                            const Goal& goal) {
  PlacementRequest request;
  request.bytes = kBlockBytes;
  request.fastest = static_cast<TierId>(raw(goal.tier) + 1);
  if (!goal.at_once) return placement_.choose(views(mode, victim.account, false), request);
  const bool goes_on = stretch_.target && stretch_.blocks_left != 0 && stretch_.mode == mode &&
                       stretch_.account == victim.account &&
                       memory_.pool(*stretch_.target).free_slabs() != 0;
  if (!goes_on) {
    request.bytes = kStretchBlocks * kBlockBytes;
    const std::vector<TierView> tiers = views(mode, victim.account, true);
    stretch_ = {placement_.choose(tiers, request), kStretchBlocks, mode, victim.account};
    if (!stretch_.target) {
      request.bytes = kBlockBytes;
      stretch_ = {placement_.choose(tiers, request), 1, mode, victim.account};
    }
  }
  --stretch_.blocks_left;
  return stretch_.target;
}

// With the room that there is for an account. `at_once`: and with what the batch under way has
// given each device to do.
std::vector<TierView> Organizer::views(BufferingMode mode, AccountId account, bool at_once) const {
  std::vector<TierView> tiers;
  for (unsigned index = 0; index < memory_.tiers_for(mode); ++index) {
    const BucketPool& pool = memory_.pool(static_cast<TierId>(index));
    TierView view;
    view.id = static_cast<TierId>(index);
    if (!memory_.takes_blocks(view.id)) {
      tiers.push_back(view);  // as one without room
      continue;
    }
    view.capacity_bytes = std::uint64_t{pool.slab_count()} * kBlockBytes;
    const std::uint32_t free = pool.accounts().grant(account, pool.slab_count(), pool.free_slabs());
    view.free_bytes = std::uint64_t{free} * kBlockBytes;
    const double bandwidth =
        memory_.device_board().bandwidth[index].load(std::memory_order_relaxed);
    if (bandwidth > 0) view.bandwidth = bandwidth;
    if (at_once)
      view.backlog = static_cast<double>(batch_.blocks_to(view.id) * kBlockBytes) / view.bandwidth;
    tiers.push_back(view);
  }
  return tiers;
}

}  // namespace cairn
