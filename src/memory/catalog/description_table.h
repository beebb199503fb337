// SPDX-License-Identifier: Apache-2.0
// Open descriptions (POSIX "open file descriptions"): the offset and status flags that dup, fork
// and exec share; and the holds by which processes keep them, and mappings, alive.
//
// A process has one hold per description (its own descriptors are counted in the process), released
// at the last close or by the service when the process has died. A hold in transit belongs to a
// child that does not exist yet: the parent makes it before fork or exec, the child converts it.
//
//   hold word:  | kind : 3 | spare : 5 | owner : 24 | index : 32 |   0 = free
//
// Thread safety: lock-free, but for `offset`, which read(), write() and lseek() change under
// `offset_lock`.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/owned_lock.h"
#include "memory/catalog/record_cursor.h"

namespace cairn {

// Flag of OpenDescription::flags, beside O_*: somebody shares the description past the buffers, so
// the offset is the kernel's, in the private descriptor that was inherited with it.
inline constexpr std::uint32_t kOffsetInKernel = std::uint32_t{1} << 31;

struct OpenDescription {
  std::atomic<std::uint64_t> offset;
  std::atomic<std::uint32_t> object;  // ObjectIndex, 0 = free record
  std::atomic<std::uint32_t> flags;   // O_ACCMODE, O_APPEND, O_DIRECT, O_SYNC, O_NONBLOCK...
  OwnedLock offset_lock;
  std::atomic<std::uint32_t> references;  // holds on it
  std::atomic<std::uint32_t> generation;  // advances when the record is freed
  std::atomic<std::uint32_t> error_seen;  // Object::error_sequence that was reported through it
  std::uint32_t padding[8];
};
static_assert(sizeof(OpenDescription) == 64, "one cache line per open description");

enum class HoldKind : std::uint8_t { kFree = 0, kDescription, kDescriptionInTransit, kThrough };

struct Hold {
  std::atomic<std::uint64_t> word;
};

// The counts of both tables, in the control segment. Makers of descriptions and holds write them.
struct alignas(64) DescriptionBoard {
  std::atomic<std::uint32_t> cursor;
  std::atomic<std::uint32_t> hold_cursor;
  std::atomic<std::uint32_t> is_full;  // FullMark
  std::atomic<std::uint32_t> holds_are_full;
};
static_assert(sizeof(DescriptionBoard) == 64, "one line");

class DescriptionTable {
 public:
  DescriptionTable() = default;
  DescriptionTable(OpenDescription* records, std::uint32_t capacity, Hold* holds,
                   std::uint32_t hold_capacity, DescriptionBoard* board)
      : records_(records),
        capacity_(capacity),
        holds_(holds),
        hold_capacity_(hold_capacity),
        board_(board) {}

  // The record of any number: one that is none of the table's has record 0, which is nobody's.
  OpenDescription& at(DescriptionIndex index) const {
    return records_[raw(index) < capacity_ ? raw(index) : 0];
  }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t hold_capacity() const { return hold_capacity_; }
  // Records and holds at these numbers and above have never been used.
  std::uint32_t used() const { return used_records(board_->cursor, capacity_); }
  std::uint32_t used_holds() const { return used_records(board_->hold_cursor, hold_capacity_); }

  // A new description of `object` at offset 0 without holds, or kNone when the table is full.
  DescriptionIndex create(ObjectIndex object, std::uint32_t flags);
  // Requires: references == 0.
  void destroy(DescriptionIndex index);

  // Makes a hold and counts it on the description. kNone when the table of holds is full.
  HoldIndex hold(DescriptionIndex index, Owner owner, HoldKind kind);
  // A hold on an object's through mode (a mapping). The caller has counted Object::through.
  HoldIndex hold_through(ObjectIndex object, Owner owner);
  // Hands a hold over from `from` to `to` (fork, exec). False when it is no longer there.
  bool transfer(HoldIndex hold, Owner from, Owner to, DescriptionIndex expected);

  struct Released {
    HoldKind kind = HoldKind::kFree;
    std::uint32_t index = 0;  // description or object
    bool last = false;        // no hold on the description is left: the caller closes the object
  };
  // Frees the hold if `owner` still has it.
  Released release(HoldIndex hold, Owner owner);

  // Whether anybody holds a description of `object` with this number. Any number may be asked for.
  bool is_held(DescriptionIndex index, ObjectIndex object) const {
    if (raw(index) >= capacity_) return false;
    const OpenDescription& record = at(index);
    return record.object.load(std::memory_order_acquire) == raw(object) &&
           record.references.load(std::memory_order_acquire) != 0;
  }

  // For the sweep after a death.
  struct HoldView {
    HoldKind kind;
    Owner owner;
    std::uint32_t index;
  };
  HoldView view(HoldIndex hold) const;
  // For a successor of a dead service, which believes no word: frees a hold whose word is none that
  // anybody writes where there are so many owners' slots. Returns whether it was one.
  bool free_unsound(HoldIndex hold, std::uint32_t slot_count, std::uint32_t objects) const;

 private:
  FullMark full_mark() const { return FullMark(&board_->is_full); }
  FullMark holds_full_mark() const { return FullMark(&board_->holds_are_full); }
  std::uint32_t claim_record(ObjectIndex object);
  HoldIndex claim_hold(std::uint64_t word);

  OpenDescription* records_ = nullptr;
  std::uint32_t capacity_ = 0;
  Hold* holds_ = nullptr;
  std::uint32_t hold_capacity_ = 0;
  DescriptionBoard* board_ = nullptr;
};

}  // namespace cairn
