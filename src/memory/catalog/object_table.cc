// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/object_table.h"

#include "base/atomic_max.h"
#include "base/check.h"

namespace cairn {

HashPosition ObjectTable::position_of(const ObjectKey& key) {
  const std::uint64_t hash =
      mix_bits(key.id.inode * 0x9e3779b97f4a7c15ULL + mix_bits(Object::place_of(key)) +
               static_cast<std::uint64_t>(key.id.birth_ns));
  return HashPosition{hash >> 8, static_cast<std::uint32_t>(hash * 0x2545f4914f6cdd1dULL >> 32)};
}

ObjectIndex ObjectTable::find(const ObjectKey& key) const {
  const auto is_of_key = [&](std::uint32_t index) {
    const Object& object = at(static_cast<ObjectIndex>(index));
    return object.has(kObjectLive) && object.is_of(key);
  };
  const HashPosition position = position_of(key);
  const std::uint32_t guessed = hash_.guess_by_tag(position);
  // A finder goes on to the times, in the record's second line: both lines come at once.
  __builtin_prefetch(&at(static_cast<ObjectIndex>(guessed)).mtime_ns);
  // A live record is one of the table's.
  if (__builtin_expect(is_of_key(guessed), 1)) return static_cast<ObjectIndex>(guessed);
  const std::uint32_t found = hash_.find(position, is_of_key);
  return is_index(static_cast<ObjectIndex>(found)) ? static_cast<ObjectIndex>(found)
                                                   : ObjectIndex::kNone;
}

// A record that counts as live. Count and cursor share a line that all processes want: they are
// changed one right after the other, before anything else of the record, so that the line comes
// once (two processes that open new files each: 1.9 M/s altogether when it came three times).
ObjectIndex ObjectTable::claim_free_record() {
  if (board_->live_count.fetch_add(1, std::memory_order_relaxed) + 1 >= capacity_) {
    board_->live_count.fetch_sub(1, std::memory_order_relaxed);
    return ObjectIndex::kNone;
  }
  // The cursor walks the table once around; records behind it were freed or are in use.
  for (std::uint32_t tries = 0; tries < capacity_; ++tries) {
    const std::uint32_t index = run_.next(board_->cursor, capacity_);
    if (index == 0) continue;  // 0 names no object
    std::uint32_t free = 0;
    if (objects_[index].flags.load(std::memory_order_relaxed) == 0 &&
        objects_[index].flags.compare_exchange_strong(free, kObjectLive,
                                                      std::memory_order_acq_rel)) {
      return static_cast<ObjectIndex>(index);
    }
  }
  board_->live_count.fetch_sub(1, std::memory_order_relaxed);
  return ObjectIndex::kNone;
}

ObjectIndex ObjectTable::acquire(const ObjectKey& key, const StoreStamp& stamp, Owner self,
                                 const OwnerTable& owners, Acquisition* how) {
  const HashPosition position = position_of(key);
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  *how = Acquisition();
  if (const ObjectIndex found = find(key); found != ObjectIndex::kNone) {
    at(found).opens.fetch_add(1, std::memory_order_acq_rel);
    return found;
  }
  // reclaim() takes this line's lock, too: a record of this key that went since the look counts.
  if (stamp.reclaims != reclaims()) {
    how->is_too_old = true;
    return ObjectIndex::kNone;
  }
  const ObjectIndex index = claim_free_record();
  if (index == ObjectIndex::kNone) return index;
  Object& object = at(index);
  object.set_key(key);
  object.size.store(stamp.size, std::memory_order_relaxed);
  // The service raises the count before it looks for the object under this line's lock: either it
  // finds this one, or its count is seen here.
  how->begins_through = unserved_->keys.load(std::memory_order_relaxed) != 0;
  object.through.store(how->begins_through ? 1 : 0, std::memory_order_relaxed);
  object.opens.store(1, std::memory_order_relaxed);
  object.blocks.store(0, std::memory_order_relaxed);
  object.dirty_blocks.store(0, std::memory_order_relaxed);
  object.mtime_ns.store(stamp.mtime_ns, std::memory_order_relaxed);
  object.ctime_ns.store(stamp.ctime_ns, std::memory_order_relaxed);
  object.store_mtime_ns.store(stamp.mtime_ns, std::memory_order_relaxed);
  object.store_ctime_ns.store(stamp.ctime_ns, std::memory_order_relaxed);
  object.store_size.store(stamp.size, std::memory_order_relaxed);
  object.error_number.store(0, std::memory_order_relaxed);
  object.forget_elsewhere();
  object.marks.store(0, std::memory_order_relaxed);
  if (const std::uint32_t cuts = board_->cut_writes.load(std::memory_order_acquire); cuts != 0) {
    object.marks.store(kMarkKnownElsewhere, std::memory_order_relaxed);
    object.cut_writes.store(cuts, std::memory_order_relaxed);
  }
  object.number_bits.store(0, std::memory_order_relaxed);
  object.dirty_low.store(UINT32_MAX, std::memory_order_relaxed);
  object.dirty_high.store(0, std::memory_order_relaxed);
  object.writers.store(0, std::memory_order_relaxed);
  if (!hash_.insert_locked(position, raw(index))) {
    // In the order of reclaim().
    object.flags.store(0, std::memory_order_release);
    board_->live_count.fetch_sub(1, std::memory_order_relaxed);
    return ObjectIndex::kNone;
  }
  // Others see the object from here on, and none of them can open it before this line is unlocked.
  if (__builtin_expect(unserved_->unmanaged.may_have(key), 0))
    object.through.fetch_or(kThroughSuspected, std::memory_order_seq_cst);
  how->is_new = true;
  return index;
}

bool ObjectTable::note_handed_over(ObjectIndex index, const ObjectKey& key, Owner self,
                                   const OwnerTable& owners) {
  Object& object = at(index);
  OwnedGuard guard(hash_.lock_of(position_of(key)), self, owners);
  if (!object.has(kObjectLive) || !object.is_of(key)) return false;
  object.set(kObjectHandedOver);
  return true;
}

bool ObjectTable::retire(ObjectIndex index, Owner self, const OwnerTable& owners) {
  Object& object = at(index);
  const HashPosition position = position_of(object.key());
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  // A process that has the file past the buffers can give it a name yet (O_TMPFILE).
  if (object.opens.load() != 0 || object.is_in_kernels_use() || !object.has(kObjectLive))
    return false;
  if (object.has(kObjectRetired)) return true;
  object.set(kObjectRetired);
  return hash_.erase_locked(position, raw(index));
}

void ObjectTable::note_cut_write(ObjectIndex index) const {
  Object& object = at(index);
  object.mark(kMarkKnownElsewhere, true);
  raise_to(object.cut_writes, board_->cut_writes.fetch_add(1, std::memory_order_acq_rel) + 1);
}

std::uint32_t ObjectTable::reclaim_idle(std::uint32_t wanted, Owner self,
                                        const OwnerTable& owners) {
  std::uint32_t reclaimed = 0;
  for (std::uint32_t index = 1; index < capacity_ && reclaimed < wanted; ++index) {
    const Object& object = objects_[index];
    if (!object.has(kObjectLive) || object.opens.load(std::memory_order_relaxed) != 0 ||
        object.blocks.load(std::memory_order_relaxed) != 0) {
      continue;
    }
    if (reclaim(static_cast<ObjectIndex>(index), self, owners)) ++reclaimed;
  }
  return reclaimed;
}

}  // namespace cairn
