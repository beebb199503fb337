// SPDX-License-Identifier: Apache-2.0
// The descriptor of one bucket: which block it holds, in which state, and the lock word that guards
// it. One cache line. Everybody may read it; the handles of memory/catalog/block_life.h alone
// change it.
//
// Invariants
//  1. `word` is a sequence lock with a named owner: readers copy without locking and accept the
//     copy when the word is unlocked and unchanged; any other change of the descriptor, or of
//     the bucket's bytes, needs the lock.
//  2. The sequence advances on every unlock that changed something.
//  3. A page's valid bit is set after its bytes are in the bucket, and after its dirty bit; a dirty
//     bit of a page that is not valid counts for nothing.
//  4. While `claim` names a living claimant the bucket's memory stays where it is and nobody else
//     evicts, moves, truncates or flushes the block: the claimant's device reads the memory without
//     the lock. While `claim` counts a pin nobody evicts, moves or truncates it; a flush may go on.
//
//   word:      | sequence : 32 | spare : 5 | unproven : 1 | unread : 1 | waiters : 1 | owner : 24 |
//   identity:  | number : 32 | object : 32 |   in one word so that a reader compares once; 0: none
//   claim:     | pins : 8 | claimant : 24 |    a futex word for those who must wait
//
//   bytes:     0 word, 8 identity, 16 valid, 18 dirty, 20 state, 21 size class, 22 reason,
//              23 fetched by, 24 claim, 28 recency, 32 frequency, 36 dirty since, 40 placed,
//              44 sealed at, 48 sealed pages, 50 spare
//
// `unread`: fetched ahead of its use, and nobody has read it yet. Such a block is no plain hit, so
// that its first use is seen; that use takes the mark away (take_unread()). `unproven`: the same
// for a block whose bytes are to be compared with their checksums before anybody reads them.
// `sealed`: at that sequence these pages were as their checksums say (memory/tiers/page_seals.h).
//
// Thread safety: as above. Death safety: the lock can be taken over from a dead owner; every
// intermediate state is legal because bits are published after the bytes they speak of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/fence.h"
#include "base/ids.h"
#include "base/signal_gate.h"
#include "memory/arena/owned_lock.h"
#include "memory/arena/owner.h"
#include "memory/arena/step_pause.h"
#include "memory/catalog/block_state.h"
#include "memory/catalog/size_class.h"

namespace cairn {

class BlockDescriptor {
 public:
  // The lock word.
  static constexpr std::uint64_t kWaiters = std::uint64_t{1} << Owner::kBits;
  static constexpr std::uint64_t kUnread = kWaiters << 1;
  static constexpr std::uint64_t kUnproven = kUnread << 1;
  // What an owner leaves in the word, and what may change beside him.
  static constexpr std::uint64_t kMarks = kUnread | kUnproven;
  static constexpr unsigned kSequenceShift = 32;
  static constexpr std::uint64_t kSequenceStep = std::uint64_t{1} << kSequenceShift;
  // The bits that an unlock clears: owner, waiters and the spare ones.
  static constexpr std::uint64_t kLockMask = (kSequenceStep - 1) & ~kMarks;

  static constexpr Owner owner_in(std::uint64_t word) {
    return Owner::from_bits(static_cast<std::uint32_t>(word));
  }
  static constexpr bool is_locked(std::uint64_t word) { return (word & Owner::kMask) != 0; }
  // Neither locked nor marked: what a plain hit asks.
  static constexpr bool is_at_rest(std::uint64_t word) {
    return (word & (std::uint64_t{Owner::kMask} | kMarks)) == 0;
  }
  static constexpr std::uint32_t sequence_in(std::uint64_t word) {
    return static_cast<std::uint32_t>(word >> kSequenceShift);
  }
  std::uint64_t word(std::memory_order order = std::memory_order_relaxed) const {
    return word_.load(order);
  }
  std::uint32_t sequence() const { return sequence_in(word()); }

  // The block.
  static constexpr std::uint64_t identity_of(ObjectIndex object, BlockNumber number) {
    return std::uint64_t{raw(number)} << 32 | raw(object);
  }
  static constexpr ObjectIndex object_in(std::uint64_t identity) {
    return static_cast<ObjectIndex>(identity & 0xffffffffU);
  }
  static constexpr BlockNumber number_in(std::uint64_t identity) {
    return static_cast<BlockNumber>(identity >> 32);
  }
  std::uint64_t identity() const { return identity_.load(std::memory_order_acquire); }
  ObjectIndex object_index() const { return object_in(identity_.load(std::memory_order_relaxed)); }
  BlockNumber block_number() const { return number_in(identity_.load(std::memory_order_relaxed)); }
  bool holds(ObjectIndex object, BlockNumber number) const {
    return identity_.load(std::memory_order_relaxed) == identity_of(object, number);
  }
  // The same for the number that any offset would have, also one behind all blocks.
  bool holds(ObjectIndex object, std::uint64_t wide_number) const {
    const std::uint64_t seen = identity_.load(std::memory_order_relaxed);
    return object_in(seen) == object && seen >> 32 == wide_number;
  }
  // Without the lock: it was the block's place, at rest, and nothing of the block was dirty. False
  // proves nothing.
  template <typename Pause = NoPause>
  bool is_clean_place_of(ObjectIndex object, BlockNumber number,
                         const Pause& pause = Pause()) const {
    const std::uint64_t before = word_.load(std::memory_order_acquire);
    if (is_locked(before)) return false;
    pause.at_step();
    // A bucket that the block has just left has no dirty page either.
    const bool is_place = identity() == identity_of(object, number);
    pause.at_step();
    if (!is_place || dirty_pages() != 0) return false;
    pause.at_step();
    const std::uint64_t after = word_.load(std::memory_order_relaxed);
    return ((before ^ after) & ~(kWaiters | kMarks)) == 0;
  }

  std::uint16_t valid_pages() const { return valid_pages_.load(std::memory_order_relaxed); }
  std::uint16_t dirty_pages() const { return dirty_pages_.load(std::memory_order_acquire); }
  BlockState state() const { return state_.load(std::memory_order_relaxed); }
  // Whether there is anything to carry: a block that is being filled has nothing yet.
  bool has_bytes() const { return state() != BlockState::kFree && state() != BlockState::kFilling; }
  SizeClass size_class() const { return static_cast<SizeClass>(size_class_); }
  std::size_t bucket_bytes() const { return bytes_in(size_class()); }

  // Claims and pins.
  static constexpr unsigned kPinShift = Owner::kBits;
  static constexpr std::uint32_t kPin = std::uint32_t{1} << kPinShift;
  static constexpr std::uint32_t kPinsMax = 255;
  static constexpr Owner claimant_in(std::uint32_t claim) { return Owner::from_bits(claim); }
  static constexpr std::uint32_t pins_in(std::uint32_t claim) { return claim >> kPinShift; }
  Owner claimant() const { return claimant_in(claim_.load(std::memory_order_acquire)); }
  std::uint32_t pins() const { return pins_in(claim_.load(std::memory_order_acquire)); }
  // A living owner flushes or moves the block. Requires: the lock, or the answer is old.
  bool is_claimed(const OwnerTable& owners) const {
    const Owner owner = claimant();
    return static_cast<bool>(owner) && owners.is_alive(owner);
  }
  // The block must stay where it is: somebody has claimed or pinned it.
  bool is_held(const OwnerTable& owners) const { return pins() != 0 || is_claimed(owners); }
  // Waits, without the lock, until no living owner has claimed this block. Requires: the caller
  // does not hold the lock.
  void wait_for_claimant(const OwnerTable& owners) const {
    (void)wait_until_free(owners, Owner::kMask);
  }
  // The same until it is pinned no more, either. Takes pins away that nobody gives back within a
  // second.
  void wait_for_holders(const OwnerTable& owners);
  // After a death: the claim of an owner that is dead ends. Only the service's sweep needs it, for
  // everybody else a dead claimant is none. True if there was one.
  bool release_dead_claim(const OwnerTable& owners);

  // Hints for the policies and for those who look at one block.
  std::uint32_t recency_ms() const { return recency_ms_.load(std::memory_order_relaxed); }
  std::uint32_t frequency() const { return frequency_.load(std::memory_order_relaxed); }
  std::uint32_t dirty_since_ms() const { return dirty_since_ms_.load(std::memory_order_relaxed); }
  std::uint32_t placed_ms() const { return placed_ms_.load(std::memory_order_relaxed); }
  PlacementReason reason() const {
    return static_cast<PlacementReason>(reason_.load(std::memory_order_relaxed));
  }
  // Counts `weight` uses, the last of them now. Any thread, without the lock: a use may get lost.
  void note_use(std::uint32_t now_ms, std::uint32_t weight) {
    recency_ms_.store(now_ms, std::memory_order_relaxed);
    frequency_.store(frequency_.load(std::memory_order_relaxed) + weight,
                     std::memory_order_relaxed);
  }

  bool is_unread() const { return (word() & kUnread) != 0; }
  bool is_unproven() const { return (word() & kUnproven) != 0; }
  bool is_marked() const { return (word() & kMarks) != 0; }
  // While it is unread: the number of the predictor that had it fetched.
  std::uint8_t fetched_by() const { return fetched_by_.load(std::memory_order_relaxed); }
  // Takes the mark, with or without the lock; false when it was not there, or somebody else has
  // just taken it.
  bool take_unread() {
    return (word_.fetch_and(~kUnread, std::memory_order_relaxed) & kUnread) != 0;
  }
  void take_unproven() { word_.fetch_and(~kUnproven, std::memory_order_relaxed); }

  // The pages that are as their checksums say if the sequence is `sequence`.
  std::uint16_t sealed_pages(std::uint32_t sequence) const {
    const bool is_sealed = sealed_at_.load(std::memory_order_acquire) == sequence;
    return is_sealed ? sealed_pages_.load(std::memory_order_relaxed) : std::uint16_t{0};
  }

 private:
  friend class BlockLock;
  friend class FreshBlock;
  friend class LockedBlock;
  friend class WritableBlock;
  friend class UnclaimedBlock;
  friend class ClaimedBlock;
  friend class PinnedBlock;
  friend class DirtyBlocks;
  friend class BlockProbe;  // memory/catalog/testing/block_probe.h
  friend struct BlockLayout;

  // Takes the write lock, from a dead owner if need be: then `state` is repaired from the masks and
  // true is returned, and the caller must find out whether the bucket is still the block's place
  // (BlockLock does).
  bool lock(Owner self, const OwnerTable& owners) {
    CAIRN_DCHECK(static_cast<bool>(self));
    enter_signal_gate();
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    const bool is_ours =
        !is_locked(seen) &&
        word_.compare_exchange_strong(seen, seen | self.bits(), std::memory_order_acquire);
    if (__builtin_expect(!is_ours, 0)) return wait_for_lock(self, owners);
    order_after_lock();
    return false;
  }
  bool try_lock(Owner self);
  // `step` is kSequenceStep when something has changed, which sends concurrent readers back to try
  // again, and else 0.
  void unlock(Owner self, std::uint64_t step) {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    CAIRN_DCHECK(owner_in(seen) == self);
    (void)self;
    while (!word_.compare_exchange_weak(seen, ((seen & ~kLockMask) + step),
                                        std::memory_order_release, std::memory_order_relaxed)) {
    }
    if (__builtin_expect((seen & kWaiters) != 0, 0)) wake_waiters();
    leave_signal_gate();
  }
  // Nobody may see a write of the owner before its lock word (Boehm, section 4). Costs
  // nothing on x86.
  static void order_after_lock() { fence(std::memory_order_release); }
  // Somebody else has it. Requires: the signal gate is entered. Returns what lock() does.
  bool wait_for_lock(Owner self, const OwnerTable& owners);
  void wake_waiters();
  void repair_after_steal();
  // False when it is still pinned, and has been for long without a claim.
  bool wait_until_free(const OwnerTable& owners, std::uint32_t mask) const;
  void wake_claim_waiters() const;

  // All that follow require the lock.
  void set_identity(ObjectIndex object, BlockNumber number) {
    identity_.store(identity_of(object, number), std::memory_order_release);
  }
  // Requires also that the directory does not point here any more.
  void clear_identity() { identity_.store(0, std::memory_order_release); }
  void set_pages(std::uint16_t valid, std::uint16_t dirty) {
    CAIRN_DCHECK((dirty & ~valid) == 0);
    // In this order: a death between the two would leave new bytes in a page that is valid and not
    // dirty. A page that is dirty and not valid counts for nothing.
    dirty_pages_.store(dirty, std::memory_order_release);
    valid_pages_.store(valid, std::memory_order_release);
  }
  void set_state(BlockState next) {
    CAIRN_DCHECK(is_legal_transition(state(), next));
    state_.store(next, std::memory_order_relaxed);
  }
  void set_unread(std::uint8_t predictor) {
    fetched_by_.store(predictor, std::memory_order_relaxed);
    word_.fetch_or(kUnread, std::memory_order_relaxed);
  }
  void set_unproven() { word_.fetch_or(kUnproven, std::memory_order_relaxed); }
  // The seal holds from the sequence `at` on. A death in between leaves fewer pages.
  void set_sealed(std::uint32_t at, std::uint16_t pages) {
    sealed_pages_.store(0, std::memory_order_relaxed);
    sealed_at_.store(at, std::memory_order_release);
    sealed_pages_.store(pages, std::memory_order_release);
  }
  void set_claimant(Owner owner) {
    // Pins come and go beside it.
    std::uint32_t seen = claim_.load(std::memory_order_relaxed);
    while (!claim_.compare_exchange_weak(seen, (seen & ~Owner::kMask) | owner.bits(),
                                         std::memory_order_release, std::memory_order_relaxed)) {
    }
  }

  std::atomic<std::uint64_t> word_{0};
  std::atomic<std::uint64_t> identity_{0};
  std::atomic<std::uint16_t> valid_pages_{0};
  std::atomic<std::uint16_t> dirty_pages_{0};
  std::atomic<BlockState> state_{BlockState::kFree};
  std::uint8_t size_class_ = 0;
  std::atomic<std::uint8_t> reason_{0};  // a PlacementReason: why the block is where it is
  std::atomic<std::uint8_t> fetched_by_{0};
  std::atomic<std::uint32_t> claim_{0};
  std::atomic<std::uint32_t> recency_ms_{0};
  std::atomic<std::uint32_t> frequency_{0};
  std::atomic<std::uint32_t> dirty_since_ms_{0};
  std::atomic<std::uint32_t> placed_ms_{0};
  std::atomic<std::uint32_t> sealed_at_{0};
  std::atomic<std::uint16_t> sealed_pages_{0};
  std::uint8_t spare_[14] = {};
};

// The layout that every process of a node agrees upon.
struct BlockLayout {
  using Descriptor = BlockDescriptor;
  static_assert(sizeof(Descriptor) == 64, "one cache line per bucket");
  static_assert(offsetof(Descriptor, word_) == 0);
  static_assert(offsetof(Descriptor, identity_) == 8);
  static_assert(offsetof(Descriptor, valid_pages_) == 16);
  static_assert(offsetof(Descriptor, dirty_pages_) == 18);
  static_assert(offsetof(Descriptor, state_) == 20);
  static_assert(offsetof(Descriptor, size_class_) == 21);
  static_assert(offsetof(Descriptor, reason_) == 22);
  static_assert(offsetof(Descriptor, fetched_by_) == 23);
  static_assert(offsetof(Descriptor, claim_) == 24);
  static_assert(offsetof(Descriptor, recency_ms_) == 28);
  static_assert(offsetof(Descriptor, frequency_) == 32);
  static_assert(offsetof(Descriptor, dirty_since_ms_) == 36);
  static_assert(offsetof(Descriptor, placed_ms_) == 40);
  static_assert(offsetof(Descriptor, sealed_at_) == 44);
  static_assert(offsetof(Descriptor, sealed_pages_) == 48);
  static_assert(offsetof(Descriptor, spare_) == 50);
  // The words: owner, waiters, unread and sequence; claimant and pins.
  static_assert(Owner::kMask == 0x00ff'ffff);
  static_assert(Descriptor::kWaiters == 0x0100'0000);
  static_assert(Descriptor::kUnread == 0x0200'0000);
  static_assert(Descriptor::kUnproven == 0x0400'0000);
  static_assert(Descriptor::kLockMask == 0xf9ff'ffff, "an unlock keeps the marks");
  static_assert(Descriptor::sequence_in(Descriptor::kSequenceStep) == 1);
  static_assert(Descriptor::pins_in(Descriptor::kPin * Descriptor::kPinsMax) == 255);
  static_assert((Descriptor::kPin * Descriptor::kPinsMax & Owner::kMask) == 0);
  static_assert(Descriptor::identity_of(ObjectIndex{1}, BlockNumber{2}) == 0x2'0000'0001);
};

}  // namespace cairn
