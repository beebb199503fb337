// SPDX-License-Identifier: Apache-2.0
// The descriptor of one bucket: which block it holds, in which state, and the lock word that guards
// it. One cache line.
//
// Invariants
//  1. `word` is a sequence lock with a named owner: readers copy without locking and accept the
//     copy when the word is unlocked and unchanged; whoever changes anything else in the
//     descriptor, or the bucket's bytes, owns it.
//  2. The sequence advances on every unlock that changed something.
//  3. A page's valid bit is set after its bytes are in the bucket; a dirty bit is only ever set on
//     a valid page.
//  4. While `flusher` names a living owner the bucket's memory stays where it is and the block is
//     neither evicted, moved, truncated nor flushed by another: the flusher's device write reads
//     the memory without the lock.
//
//   word:  | sequence : 32 | spare : 6 | unread : 1 | waiters : 1 | owner : 24 |
//
// `unread`: fetched ahead of its use, and nobody has read it yet. Such a block is no plain hit, so
// that its first use is seen; whoever uses it takes the mark away (clear_unread()).
//
// Thread safety: as above. Death safety: the lock can be taken over from a dead owner; every
// intermediate state is legal because bits are published after the bytes they speak of.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/ids.h"
#include "base/signal_gate.h"
#include "memory/arena/owned_lock.h"
#include "memory/arena/owner.h"
#include "memory/catalog/block_state.h"

namespace cairn {

struct BlockDescriptor {
  std::atomic<std::uint64_t> word{0};
  // Which block it is, in one word so that a reader compares once: | number : 32 | object : 32 |,
  // 0 for none.
  std::atomic<std::uint64_t> identity{0};
  std::atomic<std::uint16_t> valid_pages{0};
  std::atomic<std::uint16_t> dirty_pages{0};
  std::atomic<BlockState> state{BlockState::kFree};
  std::uint8_t size_class = 0;
  std::uint16_t spare = 0;
  // Owner bits of the one who flushes this block, 0 for none. A futex word for those who must wait.
  std::atomic<std::uint32_t> flusher{0};
  // Sequence half of `word` when the flush in flight began.
  std::uint32_t flush_sequence = 0;
  std::atomic<std::uint32_t> recency_ms{0};
  std::atomic<std::uint32_t> frequency{0};
  std::atomic<std::uint32_t> dirty_since_ms{0};
  std::atomic<std::uint32_t> placed_ms{0};
  std::atomic<std::uint32_t> predecessor{0};
  std::atomic<std::uint8_t> reason{0};      // a PlacementReason: why the block is where it is
  std::atomic<std::uint8_t> fetched_by{0};  // while `unread`: the number of the predictor
  std::uint8_t padding[6] = {};

  static constexpr std::uint64_t kWaiters = std::uint64_t{1} << Owner::kBits;
  static constexpr std::uint64_t kUnread = kWaiters << 1;
  static constexpr unsigned kSequenceShift = 32;
  static constexpr std::uint64_t kSequenceStep = std::uint64_t{1} << kSequenceShift;
  // What an unlock clears: owner, waiters and the spare bits.
  static constexpr std::uint64_t kLockMask = (kSequenceStep - 1) & ~kUnread;

  static constexpr Owner owner_in(std::uint64_t word) {
    return Owner::from_bits(static_cast<std::uint32_t>(word));
  }
  static constexpr bool is_locked(std::uint64_t word) { return (word & Owner::kMask) != 0; }
  // Neither locked nor unread: what a plain hit asks.
  static constexpr bool is_at_rest(std::uint64_t word) {
    return (word & (std::uint64_t{Owner::kMask} | kUnread)) == 0;
  }
  bool is_unread() const { return (word.load(std::memory_order_relaxed) & kUnread) != 0; }
  // Requires: the lock.
  void set_unread(std::uint8_t predictor) {
    fetched_by.store(predictor, std::memory_order_relaxed);
    word.fetch_or(kUnread, std::memory_order_relaxed);
  }
  void clear_unread() { word.fetch_and(~kUnread, std::memory_order_relaxed); }
  // Takes the mark; false when it was not there, or somebody else has just taken it.
  bool take_unread() {
    return (word.fetch_and(~kUnread, std::memory_order_relaxed) & kUnread) != 0;
  }
  static constexpr std::uint32_t sequence_in(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> kSequenceShift);
  }

  static constexpr std::uint64_t identity_of(ObjectIndex object, BlockNumber number) {
    return std::uint64_t{raw(number)} << 32 | raw(object);
  }
  static constexpr ObjectIndex object_in(std::uint64_t identity) {
    return static_cast<ObjectIndex>(identity & 0xffffffffU);
  }
  static constexpr BlockNumber number_in(std::uint64_t identity) {
    return static_cast<BlockNumber>(identity >> 32);
  }
  ObjectIndex object_index() const { return object_in(identity.load(std::memory_order_relaxed)); }
  BlockNumber block_number() const { return number_in(identity.load(std::memory_order_relaxed)); }
  bool holds(ObjectIndex object, BlockNumber number) const {
    return identity.load(std::memory_order_relaxed) == identity_of(object, number);
  }
  // The same for the number that any offset would have, also one behind all blocks.
  bool holds(ObjectIndex object, std::uint64_t wide_number) const {
    const std::uint64_t seen = identity.load(std::memory_order_relaxed);
    return object_in(seen) == object && seen >> 32 == wide_number;
  }
  // Requires: the lock.
  void set_identity(ObjectIndex object, BlockNumber number) {
    identity.store(identity_of(object, number), std::memory_order_release);
  }
  // Requires: the lock, and that the directory does not point here any more.
  void clear_identity() { identity.store(0, std::memory_order_release); }
  // Without the lock: it was the block's place, at rest, and nothing of the block was dirty. False
  // proves nothing.
  bool is_clean_place_of(ObjectIndex object, BlockNumber number) const;

  // Takes the write lock, from a dead owner if need be: then `state` is repaired from the masks and
  // true is returned, and the caller must find out whether the bucket is still the block's place
  // (Actor::lock does).
  bool lock(Owner self, const OwnerTable& owners) {
    enter_signal_gate();
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    const bool is_ours =
        !is_locked(seen) &&
        word.compare_exchange_strong(seen, seen | self.bits(), std::memory_order_acquire);
    if (__builtin_expect(!is_ours, 0)) return wait_for_lock(self, owners);
    order_after_lock();
    return false;
  }
  bool try_lock(Owner self);
  // `changed` advances the sequence, which sends concurrent readers back to try again.
  void unlock(Owner self, bool changed) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    CAIRN_DCHECK(owner_in(seen) == self);
    (void)self;
    const std::uint64_t step = changed ? kSequenceStep : 0;
    while (!word.compare_exchange_weak(seen, ((seen & ~kLockMask) + step),
                                       std::memory_order_release, std::memory_order_relaxed)) {
    }
    if (__builtin_expect((seen & kWaiters) != 0, 0)) wake_waiters();
    leave_signal_gate();
  }
  // Waits, without the lock, until no living owner flushes this block. Requires: caller does not
  // hold the lock.
  void wait_for_flusher(const OwnerTable& owners) const;
  // True when a living owner's flush is in flight. Requires: the lock.
  bool is_flushing(const OwnerTable& owners) const;
  // Requires: the lock. Moves to `next`, which must be legal from the present state.
  void enter(BlockState next);

 private:
  // What the owner writes must not be seen before its lock word is (Boehm, section 4). Costs
  // nothing on x86.
  static void order_after_lock() {
#if !defined(__SANITIZE_THREAD__)  // which does not model fences
    std::atomic_thread_fence(std::memory_order_release);
#endif
  }
  // Somebody else has it. Requires: the signal gate is entered. Returns what lock() does.
  bool wait_for_lock(Owner self, const OwnerTable& owners);
  void wake_waiters();
  void repair_after_steal();
};
static_assert(sizeof(BlockDescriptor) == 64, "one cache line per bucket");

}  // namespace cairn
