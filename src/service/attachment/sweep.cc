// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/sweep.h"

#include <fcntl.h>

#include <algorithm>
#include <array>

#include "memory/arena/client_slot.h"
#include "memory/backing/posix_backing.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/catalog/record_cursor.h"
#include "service/attachment/used_pages.h"

namespace cairn::node {
namespace {

bool is_dead(Owner owner, const OwnerTable& owners) { return owner && !owners.is_alive(owner); }

// Frees the bucket if no block is in it, else unlocks it.
void settle_locked(BucketPool& pool, LockedBlock block, SweepCounts* counts) {
  if (block.descriptor().object_index() == ObjectIndex::kNone && pool.is_taken(block.bucket())) {
    const SizeClass size_class = pool.class_of(block.bucket());
    pool.release(static_cast<LockedBlock&&>(block).disown(size_class));
    ++counts->buckets_freed;
    return;
  }
  // The sequence advances: a reader that copied while the dead owner wrote must not accept its
  // copy.
  block.set_changed();
  ++counts->blocks_unlocked;
}

void settle_bucket(Actor& actor, BucketPool& pool, BucketIndex bucket, SweepCounts* counts) {
  const BlockDescriptor& block = actor.memory->block(bucket);
  const std::uint64_t seen = block.word(std::memory_order_acquire);
  if (is_dead(BlockDescriptor::owner_in(seen), actor.owners())) {
    settle_locked(pool, LockedBlock(actor.worker(), bucket), counts);
    return;
  }
  // Somebody else took the lock over first and found that the bucket is no block's place any more.
  // (A taken bucket without a block is otherwise always locked.)
  const bool is_orphan = !BlockDescriptor::is_locked(seen) &&
                         block.object_index() == ObjectIndex::kNone && pool.is_taken(bucket);
  if (!is_orphan) return;
  if (LockedBlock locked = LockedBlock::try_lock(actor.worker(), bucket))
    settle_locked(pool, static_cast<LockedBlock&&>(locked), counts);
}

// A death between the change of a slab and of the counts leaves them off: the free slabs, or those
// of an account. Changes in flight look the same for an instant, so only a difference that stays
// the same is believed.
void correct_counts(BucketPool& pool) {
  constexpr int kLooks = 3;
  constexpr unsigned kFree = kAccountsMax;  // behind the accounts
  TierAccounts& accounts = pool.accounts();
  std::array<std::uint32_t, kAccountsMax> used{};
  std::array<std::uint32_t, kAccountsMax + 1> differences{};
  for (int look = 0; look < kLooks; ++look) {
    bool differs = false;
    const auto compare = [&](unsigned index, std::uint32_t difference) {
      differences[index] = look == 0 || difference == differences[index] ? difference : 0;
      differs = differs || differences[index] != 0;
    };
    const std::uint32_t free_before = pool.free_slabs();
    pool.count_used_slabs(used);
    std::uint32_t all_used = 0;
    for (unsigned account = 0; account < kAccountsMax; ++account) {
      all_used += used[account];
      compare(account, used[account] - accounts.accounts[account].used.load());
    }
    const bool is_moving = pool.free_slabs() != free_before;
    compare(kFree, is_moving ? 0 : pool.slab_count() - all_used - free_before);
    if (!differs) return;
  }
  for (unsigned account = 0; account < kAccountsMax; ++account) {
    if (differences[account] != 0)
      accounts.charge(static_cast<AccountId>(account), differences[account]);
  }
  if (differences[kFree] != 0)
    pool.correct_free_slabs(static_cast<std::int32_t>(differences[kFree]));
}

// What the threads of a process were in the midst of: some of the bytes may be there, and not the
// times.
void note_writes_under_way(const NodeMemory& memory, const ClientSlot& slot) {
  const ObjectTable& objects = memory.objects();
  for (const CounterShard& shard : slot.shards) {
    const auto object = static_cast<ObjectIndex>(shard.writing.load(std::memory_order_acquire));
    if (objects.at(object).has(kObjectLive)) objects.note_cut_write(object);
  }
}

// With so many threads its shards do not tell all.
bool is_unsure(const ClientSlot& slot) {
  return slot.workers.load(std::memory_order_acquire) > ClientSlot::kShards;
}

// The files that might be written by each owner that is_meant().
template <typename IsMeant>
void note_cut_writes(const NodeMemory& memory, IsMeant&& is_meant) {
  const DescriptionTable& descriptions = memory.descriptions();
  const std::uint32_t used = descriptions.used_holds();
  for (std::uint32_t index = 1; index < used; ++index) {
    const DescriptionTable::HoldView seen = descriptions.view(static_cast<HoldIndex>(index));
    if (seen.kind != HoldKind::kDescription || !is_meant(seen.owner)) continue;
    const OpenDescription& description = descriptions.at(static_cast<DescriptionIndex>(seen.index));
    const auto object =
        static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
    const bool may_write =
        (description.flags.load(std::memory_order_relaxed) & O_ACCMODE) != O_RDONLY;
    if (memory.objects().is_index(object) && may_write) memory.objects().note_cut_write(object);
  }
}

void close_description(Actor& actor, DescriptionIndex index) {
  DescriptionTable& descriptions = actor.memory->descriptions();
  OpenDescription& description = descriptions.at(index);
  const auto object = static_cast<ObjectIndex>(description.object.load(std::memory_order_acquire));
  if (object == ObjectIndex::kNone) return;
  const bool may_write =
      (description.flags.load(std::memory_order_relaxed) & O_ACCMODE) != O_RDONLY;
  descriptions.destroy(index);
  abandon_object(actor, object, may_write);
}

void finish_release(Actor& actor, const DescriptionTable::Released& released) {
  if (released.kind == HoldKind::kThrough) {
    abandon_through(actor, static_cast<ObjectIndex>(released.index));
  } else if (released.last) {
    close_description(actor, static_cast<DescriptionIndex>(released.index));
  }
}

// Calls visit(OwnedLock&) for every lock of the arena but those of the buckets. Where nobody has
// written yet there is none that is held.
template <typename Visit>
void for_each_lock(const NodeMemory& memory, Visit&& visit) {
  for (OwnedLock& lock : memory.extend_locks().locks) visit(lock);
  const std::uint32_t objects = memory.objects().used();
  for (std::uint32_t index = 1; index < objects; ++index) {
    Object& object = memory.objects().at(static_cast<ObjectIndex>(index));
    visit(object.lock);
    visit(object.append_lock);
  }
  const std::uint32_t descriptions = memory.descriptions().used();
  for (std::uint32_t index = 1; index < descriptions; ++index) {
    visit(memory.descriptions().at(static_cast<DescriptionIndex>(index)).offset_lock);
  }
  const UsedPages pages(memory.control());
  const auto is_used = [&pages](const void* address) { return pages.has(address); };
  memory.objects().for_each_line_lock(is_used, visit);
  memory.directory().for_each_line_lock(is_used, visit);
}

// Calls settle(ObjectIndex) under the lock of each object that a dead owner may have left as
// is_left(const Object&) says. A living holder is at it, and comes to its end itself.
template <typename IsLeft, typename Settle>
void for_each_left(Actor& actor, IsLeft&& is_left, Settle&& settle) {
  const ObjectTable& objects = actor.memory->objects();
  const std::uint32_t used = objects.used();
  for (std::uint32_t index = 1; index < used; ++index) {
    Object& object = objects.at(static_cast<ObjectIndex>(index));
    if (!object.has(kObjectLive) || !is_left(object)) continue;
    const Owner holder = object.lock.holder();
    if (is_dead(holder, actor.owners())) (void)object.lock.release_if_held_by(holder);
    if (!object.lock.try_lock(actor.self)) continue;
    if (is_left(object)) settle(static_cast<ObjectIndex>(index));
    object.lock.unlock(actor.self);
  }
}

}  // namespace

SweepCounts sweep_buckets(Actor& actor) {
  SweepCounts counts;
  const NodeMemory& memory = *actor.memory;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    BucketPool& pool = memory.pool(static_cast<TierId>(tier));
    pool.for_each_bucket([&](BucketIndex bucket) { settle_bucket(actor, pool, bucket, &counts); });
    counts.slabs += pool.reclaim_dead_leases(actor.owners());
    correct_counts(pool);
  }
  return counts;
}

void sweep_cut_writes(const NodeMemory& memory, std::span<const Owner> gone) {
  std::vector<Owner> unsure;
  for (const Owner owner : gone) {
    const ClientSlot& slot = memory.slot(owner.slot());
    note_writes_under_way(memory, slot);
    if (is_unsure(slot)) unsure.push_back(owner);
  }
  if (unsure.empty()) return;
  note_cut_writes(memory, [&unsure](Owner owner) {
    return std::find(unsure.begin(), unsure.end(), owner) != unsure.end();
  });
}

void sweep_cut_writes_of_dead(const NodeMemory& memory) {
  for (unsigned index = 0; index < memory.slot_count(); ++index) {
    const ClientSlot& slot = memory.slot(static_cast<std::uint16_t>(index));
    if (slot.state.load(std::memory_order_acquire) == SlotState::kReaping)
      note_writes_under_way(memory, slot);
  }
  // No word is believed yet.
  note_cut_writes(memory, [&memory](Owner owner) {
    return owner.slot() < memory.slot_count() && is_dead(owner, memory.owners()) &&
           is_unsure(memory.slot(owner.slot()));
  });
}

std::uint32_t sweep_holds(Actor& actor, std::span<const Owner> dead,
                          std::vector<TransitHold>* in_transit) {
  DescriptionTable& descriptions = actor.memory->descriptions();
  std::uint32_t count = 0;
  const std::uint32_t used = descriptions.used_holds();
  for (std::uint32_t index = 1; index < used; ++index) {
    const auto hold = static_cast<HoldIndex>(index);
    const DescriptionTable::HoldView seen = descriptions.view(hold);
    if (seen.kind == HoldKind::kFree ||
        std::find(dead.begin(), dead.end(), seen.owner) == dead.end())
      continue;
    if (seen.kind == HoldKind::kDescriptionInTransit) {
      in_transit->push_back(TransitHold{hold, seen.owner});
      continue;
    }
    finish_release(actor, descriptions.release(hold, seen.owner));
    ++count;
  }
  return count;
}

void release_transit(Actor& actor, const TransitHold& transit) {
  DescriptionTable& descriptions = actor.memory->descriptions();
  const DescriptionTable::HoldView seen = descriptions.view(transit.hold);
  if (seen.kind != HoldKind::kDescriptionInTransit || seen.owner != transit.owner) return;
  finish_release(actor, descriptions.release(transit.hold, transit.owner));
}

std::uint32_t sweep_locks(Actor& actor) {
  const OwnerTable& owners = actor.owners();
  std::uint32_t released = 0;
  for_each_lock(*actor.memory, [&](OwnedLock& lock) {
    const Owner holder = lock.holder();
    if (is_dead(holder, owners) && lock.release_if_held_by(holder)) ++released;
  });
  const NodeMemory& memory = *actor.memory;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    memory.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
      if (memory.block(bucket).release_dead_claim(owners)) ++released;
    });
  }
  return released;
}

std::uint32_t sweep_settlings(Actor& actor) {
  std::uint32_t left = 0;
  for_each_left(
      actor, [](const Object& object) { return object.is_marked(kMarkBeingSettled); },
      [&](ObjectIndex index) {
        Object& object = actor.object(index);
        if (!object.mark(kMarkBeingSettled, false)) return;
        object.set(kObjectTimesDirty);
        ++left;
      });
  return left;
}

std::uint32_t sweep_cuts(Actor& actor) {
  std::uint32_t cut = 0;
  for_each_left(
      actor, [](const Object& object) { return object.is_changing_shape(); },
      [&](ObjectIndex index) {
        NoService nobody;
        PosixBacking no_file;
        const ObjectAccess access{actor, index, no_file, nobody};
        drop_cut_blocks(access);
        ++cut;
      });
  return cut;
}

std::uint32_t count_dead_locks(const NodeMemory& memory) {
  std::uint32_t dead = 0;
  for (unsigned tier = 0; tier < memory.tier_count(); ++tier) {
    memory.pool(static_cast<TierId>(tier)).for_each_bucket([&](BucketIndex bucket) {
      const std::uint64_t word = memory.block(bucket).word();
      if (is_dead(BlockDescriptor::owner_in(word), memory.owners())) ++dead;
    });
  }
  return dead;
}

}  // namespace cairn::node
