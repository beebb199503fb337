// SPDX-License-Identifier: Apache-2.0
// All objects of the node, found by their keys (base/object_key.h).
//
// Thread safety: find() without a lock; acquire() and reclaim() lock one hash line.
// Ownership: the records live in the control segment; an index stays valid while `opens`, `blocks`
// or a count of `through` is not 0.
#pragma once

#include <cstdint>

#include "base/ids.h"
#include "memory/arena/owner.h"
#include "memory/arena/step_pause.h"
#include "memory/catalog/hash_lines.h"
#include "memory/catalog/object.h"
#include "memory/catalog/record_cursor.h"
#include "memory/catalog/unserved_board.h"

namespace cairn {

// The counts of the table, in the control segment. Makers of objects write them.
struct alignas(64) ObjectBoard {
  std::atomic<std::uint32_t>
      cursor;  // where makers look next, in runs (memory/catalog/record_cursor.h)
  std::atomic<std::uint32_t> live_count;
  std::atomic<std::uint32_t> cut_writes;  // of all objects, ever since the node began
  // Ever since the node began. Each open reads it: a line of its own.
  alignas(64) std::atomic<std::uint32_t> reclaimed;
};
static_assert(sizeof(ObjectBoard) == 2 * 64, "what makers write and what openers read");

// How acquire() came by an object.
struct Acquisition {
  bool is_new = false;
  // It was made while unserved processes use files that have no object: it may be for one of them,
  // so it begins in through mode, which the caller leaves when it knows (meet_unserved()).
  bool begins_through = false;
  // There is no object, and the stamp may be older than the store's content: look again.
  bool is_too_old = false;
};

class ObjectTable {
 public:
  ObjectTable() = default;
  ObjectTable(Object* objects, std::uint32_t capacity, HashLines hash, ObjectBoard* board,
              const UnservedBoard* unserved)
      : objects_(objects), capacity_(capacity), hash_(hash), board_(board), unserved_(unserved) {}

  // The record of any number, also of one that a client made up: a number that is none of the
  // table's has record 0, which is never live.
  Object& at(ObjectIndex index) const { return objects_[raw(index) < capacity_ ? raw(index) : 0]; }
  // The record of a number that this process has from acquire() and nobody else could change.
  Object& known(ObjectIndex index) const { return objects_[raw(index)]; }
  bool is_index(ObjectIndex index) const { return raw(index) != 0 && raw(index) < capacity_; }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t live_count() const { return board_->live_count.load(std::memory_order_relaxed); }
  // How many records have been reclaimed. To be read before a look at the store whose stamp
  // acquire() gets.
  std::uint32_t reclaims() const { return board_->reclaimed.load(std::memory_order_acquire); }
  // Records at this number and above have never been used.
  std::uint32_t used() const { return used_records(board_->cursor, capacity_); }

  // Returns kNone when the file is not buffered.
  ObjectIndex find(const ObjectKey& key) const;

  // Finds or makes the object of a file and counts one open on it. A new one takes size and times
  // from `stamp`. Returns kNone when the stamp is too old for that (`how` tells), or when the table
  // is full: the file is then not buffered.
  ObjectIndex acquire(const ObjectKey& key, const StoreStamp& stamp, Owner self,
                      const OwnerTable& owners, Acquisition* how);

  // The service has a descriptor of the file `key`: its object, if `index` still is that, stays
  // until the flag is cleared. False when it is not.
  bool note_handed_over(ObjectIndex index, const ObjectKey& key, Owner self,
                        const OwnerTable& owners);

  // The file is gone for good: its key is forgotten at once, so that a new file that gets the same
  // inode within the same tick is not taken for it. The record is freed when the last reference
  // goes. False while somebody has it open, or the kernel works on it.
  bool retire(ObjectIndex index, Owner self, const OwnerTable& owners);

  // Frees the record if nothing refers to it. Returns false when something does.
  template <typename Pause = NoPause>
  bool reclaim(ObjectIndex index, Owner self, const OwnerTable& owners,
               const Pause& pause = Pause());

  // Calls visit(OwnedLock&) for the lines of all pages that is_used(address).
  template <typename IsUsed, typename Visit>
  void for_each_line_lock(IsUsed&& is_used, Visit&& visit) const {
    hash_.for_each_used_line(is_used, [&](HashLine& line) { visit(line.lock); });
  }

  // A process has died, or replaced its image, that may have been in the midst of a write of the
  // object. The number that it gets no object has had before: the object of a file that is made
  // anew begins with the latest of all.
  void note_cut_write(ObjectIndex index) const;

  // Reclaims unreferenced records so that new files find room. Returns how many.
  std::uint32_t reclaim_idle(std::uint32_t wanted, Owner self, const OwnerTable& owners);

 private:
  static HashPosition position_of(const ObjectKey& key);
  ObjectIndex claim_free_record();

  Object* objects_ = nullptr;
  std::uint32_t capacity_ = 0;
  HashLines hash_;
  RecordRun run_;
  ObjectBoard* board_ = nullptr;
  const UnservedBoard* unserved_ = nullptr;
};

template <typename Pause>
bool ObjectTable::reclaim(ObjectIndex index, Owner self, const OwnerTable& owners,
                          const Pause& pause) {
  Object& object = at(index);
  const HashPosition position = position_of(object.key());
  OwnedGuard guard(hash_.lock_of(position), self, owners);
  pause.at_step();
  const bool referred = object.opens.load() != 0 || object.blocks.load() != 0 ||
                        object.dirty_blocks.load() != 0 || object.is_in_kernels_use() ||
                        object.is_in_log() || object.is_in_trouble(kBytesLost) ||
                        object.is_in_trouble(kOwedByLog) ||
                        object.has(kObjectFailing | kObjectTimesDirty | kObjectHandedOver);
  if (!object.has(kObjectLive) || referred) return false;
  // First, so that a death in here cannot hide it: one too many costs a look at the store.
  board_->reclaimed.fetch_add(1, std::memory_order_release);
  pause.at_step();
  if (!object.has(kObjectRetired) && !hash_.erase_locked(position, raw(index))) return false;
  pause.at_step();
  // The count last: a death in between leaves it too high, which costs a look. Too low, it would
  // make the table seem empty.
  object.flags.store(0, std::memory_order_release);
  pause.at_step();
  board_->live_count.fetch_sub(1, std::memory_order_relaxed);
  pause.at_step();
  return true;
}

}  // namespace cairn
