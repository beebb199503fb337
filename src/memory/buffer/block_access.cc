// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/block_access.h"

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "memory/buffer/tier_choice.h"
#include "memory/tiers/page_seals.h"
#include "memory/tiers/promotion_bar.h"

namespace cairn {
namespace {

// Whether the organizer has something to do now that a tier has given some of its room away.
bool is_news_for_organizer(const NodeMemory& memory, TierId tier) {
  const PlacementBoard& placement = memory.placement_board();
  const std::uint32_t free = memory.pool(tier).common_slabs();
  return memory.organizer_board().is_short(tier, free) ||
         free < placement.plan_low_slabs[raw(tier)].load(std::memory_order_relaxed) ||
         free > placement.plan_high_slabs[raw(tier)].load(std::memory_order_relaxed);
}

// The account that pays for a block: that of the rule that reserves room for the file, else that of
// the process that brings the block.
AccountId account_for(const Actor& actor, const PartHandling& part) {
  if (__builtin_expect(!part.account, 1)) return actor.account();
  return actor.memory->accounts().is_of_rule(*part.account) ? *part.account : actor.account();
}

// Only a file's first block can stay small; later ones are part of something larger.
SizeClass class_of_block(BlockNumber number, std::size_t end) {
  return raw(number) == 0 ? class_for(end) : SizeClass::k64KiB;
}

// The bucket in RAM that a block gets.
Lease::Request memory_bucket(const Actor& actor, const BlockRequest& request,
                             const PartHandling& part) {
  return {class_of_block(request.number, request.end), request.blocks_wanted,
          account_for(actor, part)};
}

// A free bucket of a tier.
FreshBlock take_bucket(Actor& actor, TierId tier, const Lease::Request& request) {
  const NodeMemory& memory = *actor.memory;
  BucketPool& pool = memory.pool(tier);
  if (pool.slab_count() == 0 || !memory.takes_blocks(tier)) return {};
  Lease::Fresh fresh;
  FreshBlock block = actor.leases[raw(tier)].take(pool, request, actor.worker(), &fresh);
  if (fresh.count > 0) {
    if (tier == TierId::kMemory) {
      memory.warmer_board().note_used(fresh.first_slab + fresh.count);
      memory.data().populate(std::size_t{fresh.first_slab} * kBlockBytes,
                             std::size_t{fresh.count} * kBlockBytes);
    }
    if (is_news_for_organizer(memory, tier)) memory.organizer_board().bell.ring();
  }
  CAIRN_DCHECK(!block || pool.contains(block.bucket()));
  CAIRN_DCHECK(!block || block.descriptor().size_class() == request.size_class);
  if (!block) memory.organizer_board().bell.ring();
  return block;
}

// A bucket in RAM after a wait for the organizer, who moves blocks out of it in large operations of
// the devices below: as long as it gets on. Not again for a while when it does not, because nothing
// may be able to leave.
FreshBlock wait_for_memory(Actor& actor, const Lease::Request& request) {
  constexpr std::uint32_t kStandstillMs = 30;
  constexpr std::uint32_t kWaitMsMax = 1000;
  constexpr std::uint32_t kNotAgainMs = 200;
  const timespec look_again{0, 50'000};
  OrganizerBoard& board = actor.memory->organizer_board();
  const BucketPool& pool = actor.memory->pool(TierId::kMemory);
  const std::uint32_t began_ms = monotonic_coarse_ms();
  if (elapsed_ms(began_ms, board.room_missed_ms.load(std::memory_order_relaxed)) < kNotAgainMs)
    return {};
  std::uint32_t now_ms = began_ms;
  std::uint32_t moved_ms = began_ms;
  std::uint32_t made = board.room_made.load(std::memory_order_relaxed);
  while (now_ms - moved_ms < kStandstillMs && now_ms - began_ms < kWaitMsMax) {
    board.room_wanted_ms.store(now_ms, std::memory_order_relaxed);
    sys::call(SYS_nanosleep, sys::word(&look_again), 0);
    if (pool.common_slabs() != 0) {
      FreshBlock block = take_bucket(actor, TierId::kMemory, request);
      if (block) return block;
    }
    // The room is made for others: this run has its share.
    const TierAccounts& accounts = pool.accounts();
    const std::uint32_t some = std::max(pool.free_slabs(), accounts.held_back() + 1);
    if (accounts.grant(request.account, 1, some) == 0) return {};
    now_ms = monotonic_coarse_ms();
    const std::uint32_t made_now = board.room_made.load(std::memory_order_relaxed);
    if (made_now != made) moved_ms = now_ms;
    made = made_now;
  }
  board.room_missed_ms.store(now_ms, std::memory_order_relaxed);
  return {};
}

// Whether what is written is to get into RAM although there is little room. The policy may want
// that (PlacementStep::kMakeRoom). And below, each piece of a block would be an operation of the
// device (4 KiB records of HACC through an NVMe tier: 16 of them for a block that the organizer
// moves there in a 64th of one).
bool is_worth_waiting(const Actor& actor, ObjectIndex object, const PartHandling& part,
                      unsigned wanted) {
  const BucketPool& pool = actor.memory->pool(TierId::kMemory);
  const std::uint32_t low =
      actor.memory->organizer_board().low_slabs[0].load(std::memory_order_relaxed);
  if (pool.slab_count() == 0 || pool.common_slabs() > low) return false;
  const ObjectHandling handling = actor.memory->objects().at(object).handling();
  if (part.home || handling.home) return false;
  return wanted == BlockRequest::kOnlyAPiece ||
         actor.memory->placement_board().is_making_room(handling.policy);
}

// The first tier above `planned` where something is reserved for the account that it does not use
// yet. The plans know the room that is for everybody only.
unsigned first_reserved(const Actor& actor, ObjectIndex object, AccountId account,
                        unsigned planned) {
  const AccountTable& accounts = actor.memory->accounts();
  const std::uint32_t tiers = accounts.reserved_tiers.load(std::memory_order_relaxed);
  if (__builtin_expect(tiers == 0, 1) || actor.memory->objects().at(object).handling().home)
    return planned;
  for (unsigned tier = 0; tier < planned; ++tier) {
    if ((tiers >> tier & 1) != 0 && accounts.tiers[tier].unused(account) != 0) return tier;
  }
  return planned;
}

// A caller that holds other block locks must not wait.
enum class Patience : std::uint8_t { kNone, kForRoom };

// A bucket where the plan wants the block, else in the next slower tier that has room, else in the
// next faster one; then `*elsewhere` is set.
FreshBlock take_planned_bucket(const ObjectAccess& access, const BlockRequest& request,
                               const PartHandling& part, Patience patience, bool* elsewhere) {
  Actor& actor = access.actor;
  const unsigned count = actor.memory->tiers_for(access.object().handling().mode);
  const Lease::Request in_memory = memory_bucket(actor, request, part);
  if (patience == Patience::kForRoom && count > 1 &&
      is_worth_waiting(actor, access.index, part, request.blocks_wanted)) {
    FreshBlock block = take_bucket(actor, TierId::kMemory, in_memory);
    if (!block) block = wait_for_memory(actor, in_memory);
    if (block) return block;
  }
  const unsigned planned =
      std::min(raw(first_tier(actor, access.index, request.number, part)), count - 1);
  const unsigned first = first_reserved(actor, access.index, in_memory.account, planned);
  const auto take_in = [&](unsigned tier) {
    const SizeClass size_class = tier == 0 ? in_memory.size_class : SizeClass::k64KiB;
    return take_bucket(actor, static_cast<TierId>(tier),
                       {size_class, in_memory.wanted, in_memory.account});
  };
  for (unsigned tier = first; tier < count; ++tier) {
    if (FreshBlock block = take_in(tier)) return block;
    *elsewhere = true;
  }
  for (unsigned tier = first; tier-- > 0;) {
    if (FreshBlock block = take_in(tier)) return block;
  }
  return {};
}

void release_bucket(Actor& actor, FreshBlock block) {
  const TierId tier = actor.memory->tier_of(block.bucket());
  actor.memory->pool(tier).release(static_cast<FreshBlock&&>(block));
}

// Copies the bytes of `from` (any tier) into a bucket of the RAM tier. False when the pool file
// cannot be read.
bool copy_to_memory(Actor& actor, const UnclaimedBlock& from, const FreshBlock& to,
                    PlacementReason reason) {
  const NodeMemory& memory = *actor.memory;
  const std::size_t bytes = memory.bucket_bytes(from.bucket());
  CAIRN_DCHECK(memory.in_memory(to.bucket()));
  CAIRN_DCHECK(bytes <= to.descriptor().bucket_bytes());
  const TierId tier = memory.tier_of(from.bucket());
  const bool is_below = tier != TierId::kMemory;
  if (is_below && reason != PlacementReason::kStaged)
    memory.device_board().note_read(tier, monotonic_coarse_ms());
  const TierPlace above = memory.place_of(to.bucket(), 0, bytes);
  if (copy_place(memory.place_of(from.bucket()), above) < 0) return false;
  if (!is_below) return true;
  actor.count(Counter::kPromotedBlocks, 1);
  memory.journal().note(raw(tier), raw(TierId::kMemory), reason, kBlockBytes);
  return true;
}

// Moves the block into the new RAM bucket. Returns it in its new place, or where it was when the
// pool file cannot be read.
LockedBlock move_to_memory(Actor& actor, UnclaimedBlock from, FreshBlock to,
                           PlacementReason reason) {
  if (!copy_to_memory(actor, from, to, reason)) {
    release_bucket(actor, static_cast<FreshBlock&&>(to));
    return static_cast<UnclaimedBlock&&>(from).locked();
  }
  const BucketIndex below = from.bucket();
  Relocated moved =
      static_cast<UnclaimedBlock&&>(from).relocate(static_cast<FreshBlock&&>(to), reason);
  // One that is about to be written would break the seal under this lock.
  if (reason != PlacementReason::kRewritten && reason != PlacementReason::kRestored)
    seal_carried(*actor.memory, moved.block, below);
  release_bucket(actor, static_cast<FreshBlock&&>(moved.emptied));
  // It moves because it is used.
  actor.memory->block(moved.block.bucket()).note_use(monotonic_coarse_ms(), 0);
  return static_cast<LockedBlock&&>(moved.block);
}

// Whether a block in a file tier is in no case to move into memory: it belongs in a file tier, and
// if that is a faster one it is the organizer who brings it there.
bool belongs_below(Actor& actor, ObjectIndex index, BlockNumber number, BucketIndex bucket) {
  const NodeMemory& memory = *actor.memory;
  const ObjectHandling handling = actor.object(index).handling();
  const PartHandling part = memory.part_of(handling, number);
  const auto home = part.home ? part.home : home_of(memory.placement_board(), index, handling);
  const bool is_swapped = raw(memory.tier_of(bucket)) == memory.shape().swap_tier;
  return home && *home != TierId::kMemory && !is_swapped;
}

// Why a block moves into memory that is wanted for `use`.
PlacementReason reason_to_move(const NodeMemory& memory, const BlockLock& block,
                               PlacementReason use) {
  if (memory.in_memory(block.bucket())) return PlacementReason::kGrown;
  if (use == PlacementReason::kStaged) return use;
  const TierId tier = memory.tier_of(block.bucket());
  if (tier != TierId::kMemory && raw(tier) == memory.shape().swap_tier)
    return PlacementReason::kRestored;
  return use == PlacementReason::kWritten ? PlacementReason::kRewritten
                                          : PlacementReason::kPromoted;
}

enum class Placed : std::uint8_t { kReady, kRetry, kNoRoom };

// Publishes a fresh bucket as the place of a block that is not resident.
Placed publish(const ObjectAccess& access, BlockNumber number, PlacementReason reason,
               FreshBlock fresh, LockedBlock* block) {
  const BucketIndex resident = fresh.publish(access.index, number, reason, block);
  if (!*block) {
    release_bucket(access.actor, static_cast<FreshBlock&&>(fresh));
    return resident == BucketIndex::kNone ? Placed::kNoRoom : Placed::kRetry;
  }
  CAIRN_DCHECK(block->descriptor().holds(access.index, number));
  // Invariant 3 of Object: an entry into through mode or a change of shape either sees this block
  // or is seen here.
  if (!access.object().takes_blocks()) {
    discard_unfilled(access.actor, *block);
    return Placed::kNoRoom;
  }
  return Placed::kReady;
}

// Whether the block may be in a tier at all: a scratch file has no other place.
bool is_kept_out(const ObjectHandling& handling, const PartHandling& part) {
  return part.never_buffered && handling.mode != BufferingMode::kScratch;
}

// Whether a block that is read goes into RAM or nowhere. A rule or a policy that has given it a
// home decides that, and a scratch file has no other place.
bool stays_above(const NodeMemory& memory, const ObjectHandling& handling, const PartHandling& part,
                 PlacementReason reason) {
  return reason == PlacementReason::kRead && !part.home && !handling.home &&
         handling.mode != BufferingMode::kScratch &&
         memory.organizer_board().reads_stay_above.load(std::memory_order_relaxed) != 0;
}

// Gives a block that is not resident its bucket and publishes it.
Placed place(const ObjectAccess& access, const BlockRequest& request, Patience patience,
             LockedBlock* result) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const ObjectHandling handling = access.object().handling();
  const PartHandling part = memory.part_of(handling, request.number);
  if (is_kept_out(handling, part)) return Placed::kNoRoom;
  CAIRN_DCHECK(request.end != 0 && request.end <= kBlockBytes);
  bool elsewhere = false;
  FreshBlock block = stays_above(memory, handling, part, request.reason)
                         ? take_bucket(actor, TierId::kMemory, memory_bucket(actor, request, part))
                         : take_planned_bucket(access, request, part, patience, &elsewhere);
  if (!block) return Placed::kNoRoom;
  const bool is_second_choice = elsewhere && request.reason != PlacementReason::kStaged;
  const PlacementReason reason = is_second_choice ? PlacementReason::kNoRoom : request.reason;
  return publish(access, request.number, reason, static_cast<FreshBlock&&>(block), result);
}

// Gives a block a bucket in RAM that is large enough, or leaves it where it is when there is none.
// False when the caller has to look for the block again. Requires: the lock. Out of line, because
// it costs each overwrite in RAM 4 of 606 instructions otherwise.
[[gnu::noinline]] bool bring_to_memory(const ObjectAccess& access, const BlockRequest& request,
                                       LockedBlock* block) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const bool in_memory = memory.in_memory(block->bucket());
  UnclaimedBlock unclaimed(*block);
  if (!unclaimed) {
    if (!in_memory && request.reason != PlacementReason::kWritten) return true;
    static_cast<LockedBlock&&>(*block).unlock_and_wait();
    return false;
  }
  const PartHandling part = memory.part_of(access.object().handling(), request.number);
  const SizeClass size_class = in_memory ? class_for(request.end) : SizeClass::k64KiB;
  FreshBlock larger =
      take_bucket(actor, TierId::kMemory, {size_class, 1, account_for(actor, part)});
  if (!larger) {
    *block = static_cast<UnclaimedBlock&&>(unclaimed).locked();
    return true;
  }
  const PlacementReason why = reason_to_move(memory, unclaimed, request.reason);
  *block = move_to_memory(actor, static_cast<UnclaimedBlock&&>(unclaimed),
                          static_cast<FreshBlock&&>(larger), why);
  return true;
}

// A marked block is used for the first time. False when the caller has to look for it again.
[[gnu::cold]] bool settle_marks(Actor& actor, LockedBlock& block) {
  const BlockDescriptor& descriptor = block.descriptor();
  if (descriptor.is_unread()) note_first_use(actor, block);
  if (!descriptor.is_unproven()) return true;
  const NodeMemory& memory = *actor.memory;
  const std::uint16_t broken = memory.in_memory(block.bucket())
                                   ? broken_pages(memory, block.bucket(), descriptor.sequence())
                                   : std::uint16_t{0};
  if (broken == 0) {
    block.take_unproven();
    return true;
  }
  UnclaimedBlock unclaimed(block);
  if (!unclaimed) {
    static_cast<LockedBlock&&>(block).unlock_and_wait();
    return false;
  }
  forget_broken(memory, unclaimed, broken);
  block = static_cast<UnclaimedBlock&&>(unclaimed).locked();
  block.take_unproven();
  return true;
}

}  // namespace

LockedBlock lock_resident(Actor& actor, ObjectIndex object, BlockNumber number) {
  const BlockWorker worker = actor.worker();
  LockedBlock block;
  for (;;) {
    const BucketIndex bucket = worker.catalog->directory().find(object, number);
    if (bucket == BucketIndex::kNone) return block;
    if (block.lock_place(worker, bucket, object, number)) return block;
  }
}

LockedBlock place_fresh(const ObjectAccess& access, BlockNumber number, unsigned blocks_wanted) {
  LockedBlock block;
  if (access.actor.memory->directory().find(access.index, number) == BucketIndex::kNone)
    place(access,
          {.number = number, .reason = PlacementReason::kWritten, .blocks_wanted = blocks_wanted},
          Patience::kNone, &block);
  return block;
}

LockedBlock place_in_memory(const ObjectAccess& access, const BlockRequest& request) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  const BlockNumber number = request.number;
  LockedBlock block;
  if (memory.directory().find(access.index, number) != BucketIndex::kNone) return block;
  const ObjectHandling handling = access.object().handling();
  const PartHandling part = memory.part_of(handling, number);
  if (is_kept_out(handling, part)) return block;
  const TierId home = part.home.value_or(handling.home.value_or(TierId::kMemory));
  if (request.reason != PlacementReason::kFetched && home != TierId::kMemory) return block;
  FreshBlock fresh = take_bucket(actor, TierId::kMemory, memory_bucket(actor, request, part));
  if (fresh) publish(access, number, request.reason, static_cast<FreshBlock&&>(fresh), &block);
  return block;
}

void note_first_use(Actor& actor, const LockedBlock& block) {
  if (!actor.memory->note_used(block.bucket(), block.has_waited())) return;
  actor.note_met(block.has_waited() ? AccessKind::kLate : AccessKind::kFirstUse);
}

bool stays_in_file_tier(const ObjectAccess& access, BlockNumber number, BucketIndex bucket,
                        Promotion promotion) {
  const NodeMemory& memory = *access.actor.memory;
  CAIRN_DCHECK(!memory.in_memory(bucket));
  if (!memory.takes_blocks(memory.tier_of(bucket))) return false;
  if (belongs_below(access.actor, access.index, number, bucket)) return true;
  if (promotion == Promotion::kAlways) return false;
  const BucketPool& above = memory.pool(TierId::kMemory);
  if (above.free_slabs() == 0) return true;
  // A place in memory that the policy has given the file needs not be earned again.
  return access.object().handling().home != TierId::kMemory &&
         !PromotionBar::is_passed(memory.organizer_board(), above, memory.block(bucket).frequency(),
                                  monotonic_coarse_ms());
}

LockedBlock lock_or_place(const ObjectAccess& access, const BlockRequest& request) {
  Actor& actor = access.actor;
  const BlockNumber number = request.number;
  const bool is_written = request.reason == PlacementReason::kWritten;
  for (;;) {
    LockedBlock block = lock_resident(actor, access.index, number);
    if (!block) {
      const Patience patience = is_written ? Patience::kForRoom : Patience::kNone;
      const Placed placed = place(access, request, patience, &block);
      if (placed == Placed::kRetry) continue;
      return block;
    }
    if (access.object().through.load(std::memory_order_seq_cst) != 0) return {};
    const BlockDescriptor& descriptor = block.descriptor();
    CAIRN_DCHECK(descriptor.holds(access.index, number));
    if (__builtin_expect(descriptor.is_marked(), 0) && !settle_marks(actor, block)) continue;
    const bool in_memory = actor.memory->in_memory(block.bucket());
    const bool is_small = request.end > descriptor.bucket_bytes();
    if (in_memory && !is_small) return block;
    if (!in_memory && stays_in_file_tier(access, number, block.bucket(), request.promotion))
      return block;
    if (bring_to_memory(access, request, &block)) return block;
  }
}

bool give_up_clean_pages(Actor& actor, LockedBlock& block) {
  CAIRN_DCHECK(!actor.memory->in_memory(block.bucket()));
  UnclaimedBlock unclaimed(block);
  if (!unclaimed) return false;
  const std::uint16_t dirty = unclaimed.descriptor().dirty_pages();
  if (dirty != 0) {
    unclaimed.cut(dirty);
    return false;
  }
  discard_block(actor, static_cast<UnclaimedBlock&&>(unclaimed), PlacementReason::kTierFailed);
  return true;
}

void discard_block(Actor& actor, UnclaimedBlock block, PlacementReason reason) {
  const NodeMemory& memory = *actor.memory;
  memory.note_unused(block.bucket());
  const TierId tier = memory.tier_of(block.bucket());
  if (reason != PlacementReason::kNone) {
    memory.journal().note(raw(tier), MoveJournal::kDropped, reason,
                          memory.bucket_bytes(block.bucket()));
  }
  actor.leases[raw(tier)].release(memory.pool(tier), static_cast<UnclaimedBlock&&>(block).vacate(),
                                  actor.self);
}

void discard_unfilled(Actor& actor, LockedBlock& block) {
  UnclaimedBlock unclaimed(block);
  // One that a truncation left without pages may be on its way to another tier.
  if (unclaimed) {
    discard_block(actor, static_cast<UnclaimedBlock&&>(unclaimed), PlacementReason::kNone);
  } else {
    block.unlock();
  }
}

}  // namespace cairn
