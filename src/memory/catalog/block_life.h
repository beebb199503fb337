// SPDX-License-Identifier: Apache-2.0
// The life of a block as types. Each of them is the proof that its owner may do what its methods
// do; nothing else changes a descriptor.
//
//   FreshBlock ----publish()----> LockedBlock <---lock()--- the directory
//       ^                           |  |  |  |
//       |                           |  |  |  +--pin()----> PinnedBlock ------unpin()
//       |                           |  |  +--begin_flush(), begin_move()--> ClaimedBlock
//       |                           |  +--WritableBlock(...)--commit()         |  |
//       |                           v                                          |  +--end_flush()
//       +----vacate()-------- UnclaimedBlock <-----------end_move()------------+
//       +----relocate(), which gives the block to another FreshBlock
//
// FreshBlock: a bucket that is taken and in which no block is: locked, no reader can find it.
// LockedBlock: the lock of a bucket that a block is in. Reads may go on, and a flush may be in
// flight. WritableBlock: some of its pages are about to change, and are dirty. UnclaimedBlock: the
// lock, and nobody has claimed or pinned the block, so that it may lose pages, move or go.
// ClaimedBlock: without the lock; its bytes are being flushed or moved, and stay where they are.
// PinnedBlock: without the lock; somebody looks at the bytes where they are.
//
// Every transition checks the state before and after, and passes BlockCatalog::pass().
//
// Thread safety: a handle belongs to one thread. Ownership: move-only; the destructor unlocks. A
// killed process leaves a lock that the next one takes over, and a claim that counts for none. A
// pin names no owner: one for longer than a call needs a record where the service finds it.
#pragma once

#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "memory/catalog/block_catalog.h"

namespace cairn {

class LockedBlock;
class UnclaimedBlock;
class ClaimedBlock;
class PinnedBlock;
struct Relocated;

// The lock of one descriptor, whatever is in the bucket.
class BlockLock {
 public:
  BlockLock(const BlockLock&) = delete;
  BlockLock& operator=(const BlockLock&) = delete;

  explicit operator bool() const { return block_ != nullptr; }
  BucketIndex bucket() const { return bucket_; }
  const BlockDescriptor& descriptor() const { return *block_; }
  bool is_held() const { return block_->is_held(catalog_->owners()); }
  bool is_claimed() const { return block_->is_claimed(catalog_->owners()); }
  // The bytes of the bucket have changed: readers that are copying them try again.
  void set_changed() { owner_and_marks_ |= kChanged; }
  // Somebody else had the lock when it was asked for.
  bool has_waited() const { return (owner_and_marks_ & kWaited) != 0; }
  void unlock() {
    if (block_ == nullptr) return;
    block_->unlock(owner(), std::uint64_t{owner_and_marks_ & kChanged} << kChangedToStep);
    block_ = nullptr;
  }
  // The lock stays with the worker, who makes a handle of it again later.
  BucketIndex leave_locked() && {
    block_ = nullptr;
    return bucket_;
  }

 protected:
  BlockLock() = default;
  // Waits for the lock. Afterwards the descriptor names a block only if the directory agrees.
  BlockLock(const BlockWorker& worker, BucketIndex bucket) : BlockLock(worker, bucket, kIsLocked) {
    take_lock();
  }
  enum AlreadyLocked { kIsLocked };
  BlockLock(const BlockWorker& worker, BucketIndex bucket, AlreadyLocked)
      : block_(&worker.catalog->block(bucket)),
        catalog_(worker.catalog),
        bucket_(bucket),
        owner_and_marks_(worker.self.bits()) {}
  BlockLock(BlockLock&& other) noexcept
      : block_(other.block_),
        catalog_(other.catalog_),
        bucket_(other.bucket_),
        owner_and_marks_(other.owner_and_marks_) {
    other.block_ = nullptr;
  }
  BlockLock& operator=(BlockLock&& other) noexcept {
    unlock();
    block_ = other.block_;
    catalog_ = other.catalog_;
    bucket_ = other.bucket_;
    owner_and_marks_ = other.owner_and_marks_;
    other.block_ = nullptr;
    return *this;
  }
  ~BlockLock() { unlock(); }

  void take_lock() {
    if (__builtin_expect(block_->lock(owner(), catalog_->owners()), 0)) settle_stolen();
  }
  Owner owner() const { return Owner::from_bits(owner_and_marks_); }
  BlockWorker worker() const { return BlockWorker{catalog_, owner()}; }
  void set_waited() { owner_and_marks_ |= kWaited; }
  std::uint32_t sequence_after_unlock() const {
    return block_->sequence() + ((owner_and_marks_ & kChanged) != 0 ? 1 : 0);
  }
  // The conditions before and after each transition.
  void check() const {
    CAIRN_DCHECK(block_ != nullptr);
    CAIRN_DCHECK(BlockDescriptor::owner_in(block_->word()) == owner());
    CAIRN_DCHECK(agrees(block_->state(), block_->valid_pages(), block_->dirty_pages()));
  }
  void pass(BlockStep step, BlockState from, BlockState to, std::uint16_t pages) const {
    catalog_->pass(bucket_, BlockChange{step, from, to, pages});
  }
  // The last dirty page has gone.
  void turn_clean(BlockStep step, std::uint16_t pages);
  // No block is in the bucket any more. Requires: the directory does not point here.
  enum class Counts { kGoOn, kEnd };
  void empty(Counts counts);

  BlockDescriptor* block_ = nullptr;
  const BlockCatalog* catalog_ = nullptr;
  BucketIndex bucket_{};
  // | marks : 8 | owner : 24 |
  std::uint32_t owner_and_marks_ = 0;

  static constexpr std::uint32_t kChanged = std::uint32_t{1} << Owner::kBits;
  static constexpr std::uint32_t kWaited = kChanged << 1;
  static constexpr unsigned kChangedToStep = BlockDescriptor::kSequenceShift - Owner::kBits;
  static_assert(std::uint64_t{kChanged} << kChangedToStep == BlockDescriptor::kSequenceStep);

 private:
  friend class FreshBlock;
  friend class LockedBlock;
  friend class WritableBlock;
  friend class UnclaimedBlock;
  friend class ClaimedBlock;
  friend class BlockProbe;
  void settle_stolen();
  void forget_block();
};

class FreshBlock : public BlockLock {
 public:
  FreshBlock() = default;
  FreshBlock(FreshBlock&&) noexcept = default;
  FreshBlock& operator=(FreshBlock&&) noexcept = default;

  // For a pool: the bucket is about to be taken.
  static FreshBlock lock(const BlockWorker& worker, BucketIndex bucket) {
    FreshBlock block(worker, bucket);
    CAIRN_DCHECK(block.block_->state() == BlockState::kFree);
    return block;
  }
  // Takes up a block that leave_locked() left. Requires: `worker` holds the lock.
  static FreshBlock of_locked(const BlockWorker& worker, BucketIndex bucket) {
    FreshBlock block(worker, bucket, kIsLocked);
    CAIRN_DCHECK(BlockDescriptor::owner_in(block.block_->word()) == worker.self);
    CAIRN_DCHECK(block.block_->state() == BlockState::kFree);
    block.set_changed();
    return block;
  }
  // Requires: the pool knows the bucket as taken, and no block is in it: one who died had it.
  static FreshBlock take_over(LockedBlock orphan);

  // For a pool: how large the bucket is.
  void set_size_class(SizeClass size_class) {
    CAIRN_DCHECK(block_->state() == BlockState::kFree);
    block_->size_class_ = static_cast<std::uint8_t>(size_class);
  }

  // Becomes the place of a block, no page of it valid yet, unless that has one already: then
  // `*block` stays empty, and that place is returned, or kNone when the directory is full.
  BucketIndex publish(ObjectIndex object, BlockNumber number, PlacementReason reason,
                      LockedBlock* block);

 private:
  friend class UnclaimedBlock;

  FreshBlock(const BlockWorker& worker, BucketIndex bucket) : BlockLock(worker, bucket) {}
  FreshBlock(const BlockWorker& worker, BucketIndex bucket, AlreadyLocked locked)
      : BlockLock(worker, bucket, locked) {}
  explicit FreshBlock(BlockLock&& lock) : BlockLock(static_cast<BlockLock&&>(lock)) {}
  void describe(ObjectIndex object, BlockNumber number, PlacementReason reason);
  // Pages, state and hints are those of the block's old place.
  void take_after(const BlockDescriptor& old);
};

class LockedBlock : public BlockLock {
 public:
  LockedBlock() = default;
  LockedBlock(LockedBlock&&) noexcept = default;
  LockedBlock& operator=(LockedBlock&&) noexcept = default;

  // Waits for the lock. The caller looks whether the bucket is the place of its block: holds().
  LockedBlock(const BlockWorker& worker, BucketIndex bucket) : BlockLock(worker, bucket) {}
  // Empty when somebody has it.
  static LockedBlock try_lock(const BlockWorker& worker, BucketIndex bucket);
  // Takes the lock of the block whose place the caller has just found; false when it is there no
  // more. Requires: this handle is empty.
  bool lock_place(const BlockWorker& worker, BucketIndex bucket, ObjectIndex object,
                  BlockNumber number) {
    CAIRN_DCHECK(block_ == nullptr);
    block_ = &worker.catalog->block(bucket);
    catalog_ = worker.catalog;
    bucket_ = bucket;
    owner_and_marks_ = worker.self.bits();
    if (__builtin_expect(BlockDescriptor::is_locked(block_->word()), 0)) set_waited();
    take_lock();
    // A bucket that is emptied loses its identity with its block.
    const bool is_there = block_->holds(object, number);
    if (__builtin_expect(!is_there, 0)) unlock();
    return is_there;
  }

  // The store's bytes have come into `pages`.
  void fill(std::uint16_t pages);
  // All that is valid is to be stored, once more if it has been.
  void turn_dirty();
  // It was fetched ahead of its use, for a reason that the predictor's number tells.
  void set_unread(std::uint8_t predictor) { block_->set_unread(predictor); }
  // The checksums of these pages hold. Requires: something has changed under this lock, and nothing
  // does any more.
  void seal(std::uint16_t pages);
  // Before the first read the sealed pages are compared with their checksums.
  void set_unproven() { block_->set_unproven(); }
  void take_unproven() { block_->take_unproven(); }
  // Claims the block for a device that is going to read `pages` of it, which are dirty, and
  // unlocks. Requires: nobody else has claimed it.
  ClaimedBlock begin_flush(std::uint16_t pages) &&;
  // Claims the block for one who copies its bytes to another bucket, and unlocks. Requires: the
  // same, and nobody has pinned it.
  ClaimedBlock begin_move() &&;
  // Unlocks. Empty, and still locked, when there are kPinsMax already.
  PinnedBlock pin() &&;
  // For a successor of a dead service: state and pages agree afterwards, also with the bucket's
  // size. Returns whether they did not. A count of what is dirty may be too high then.
  bool mend(SizeClass size_class);
  // The same for a bucket that the directory does not know as the block's place: it holds none any
  // more.
  FreshBlock disown(SizeClass size_class) &&;
  // Unlocks, and waits until nobody has claimed or pinned the block.
  void unlock_and_wait() &&;

 private:
  friend class FreshBlock;
  friend class UnclaimedBlock;

  LockedBlock(const BlockWorker& worker, BucketIndex bucket, AlreadyLocked locked)
      : BlockLock(worker, bucket, locked) {}
  explicit LockedBlock(BlockLock&& lock) : BlockLock(static_cast<BlockLock&&>(lock)) {}
};

// Pages of a locked block whose bytes are about to change. Those that are valid turn dirty before
// that, new ones turn valid in commit(): a death at any instruction leaves no changed byte clean
// and no garbage valid. Without commit() what was valid is dirty, as it may have changed.
class WritableBlock {
 public:
  WritableBlock() = default;
  WritableBlock(LockedBlock& block, std::uint16_t pages) : lock_(&block), pages_(pages) {
    BlockDescriptor& descriptor = *block.block_;
    CAIRN_DCHECK(descriptor.object_index() != ObjectIndex::kNone);
    CAIRN_DCHECK(descriptor.sealed_pages(descriptor.sequence() + 1) == 0);
    const BlockState state = descriptor.state();
    CAIRN_DCHECK(state != BlockState::kFree);
    if (__builtin_expect(!counts_as_dirty(state), 0)) {
      pass(BlockStep::kWriteBegan, state, BlockState::kDirty);
      descriptor.set_state(BlockState::kDirty);
    }
    const std::uint16_t dirty = descriptor.dirty_pages_.load(std::memory_order_relaxed);
    const std::uint16_t changing = pages & descriptor.valid_pages();
    descriptor.dirty_pages_.store(static_cast<std::uint16_t>(dirty | changing),
                                  std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  WritableBlock(WritableBlock&& other) noexcept
      : lock_(std::exchange(other.lock_, nullptr)), pages_(other.pages_) {}
  WritableBlock& operator=(WritableBlock&& other) noexcept {
    if (lock_ != nullptr) give_up();
    lock_ = std::exchange(other.lock_, nullptr);
    pages_ = other.pages_;
    return *this;
  }
  ~WritableBlock() {
    if (__builtin_expect(lock_ != nullptr, 0)) give_up();
  }

  // The bytes are there.
  void commit() {
    BlockDescriptor& descriptor = *lock_->block_;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint16_t valid = descriptor.valid_pages();
    const std::uint16_t dirty = descriptor.dirty_pages_.load(std::memory_order_relaxed);
    CAIRN_DCHECK(counts_as_dirty(descriptor.state()));
    descriptor.set_pages(static_cast<std::uint16_t>(valid | pages_),
                         static_cast<std::uint16_t>(dirty | pages_));
    pass(BlockStep::kWritten, BlockState::kDirty, BlockState::kDirty);
    lock_->set_changed();
    lock_ = nullptr;
  }

 private:
  void pass(BlockStep step, BlockState from, BlockState to) const {
    lock_->catalog_->pass(lock_->bucket_, BlockChange{step, from, to, pages_});
  }
  [[gnu::cold]] void give_up();

  LockedBlock* lock_ = nullptr;
  std::uint16_t pages_ = 0;
};

class UnclaimedBlock : public BlockLock {
 public:
  UnclaimedBlock() = default;
  UnclaimedBlock(UnclaimedBlock&&) noexcept = default;
  UnclaimedBlock& operator=(UnclaimedBlock&&) noexcept = default;

  // Takes the lock over from `block` if nobody has claimed or pinned that; else it is empty, and
  // `block` as it was.
  explicit UnclaimedBlock(LockedBlock& block) {
    if (!block.is_held()) BlockLock::operator=(static_cast<BlockLock&&>(block));
  }
  // Somebody may claim it again.
  LockedBlock locked() && { return LockedBlock(static_cast<BlockLock&&>(*this)); }

  // Only the pages of `kept` are the block's from now on.
  void cut(std::uint16_t kept);
  // The block leaves the tiers; what was dirty of it is lost.
  template <typename Pause = NoPause>
  FreshBlock vacate(const Pause& pause = Pause()) &&;
  // The one way of a block from one bucket to another: growth, promotion and the organizer's moves.
  // A search finds the block all the while. A dirty block stays dirty where it arrives: it is
  // marked there before the old mark goes (invariant 3). Requires: the bytes of all valid
  // pages are in `fresh` already.
  template <typename Pause = NoPause>
  Relocated relocate(FreshBlock fresh, PlacementReason reason, const Pause& pause = Pause()) &&;
};

// Without the lock: a device or a mover reads the bytes. The claim ends with one of its methods.
class ClaimedBlock {
 public:
  ClaimedBlock() = default;
  ClaimedBlock(ClaimedBlock&& other) noexcept { *this = static_cast<ClaimedBlock&&>(other); }
  ClaimedBlock& operator=(ClaimedBlock&& other) noexcept {
    CAIRN_DCHECK(catalog_ == nullptr);
    catalog_ = std::exchange(other.catalog_, nullptr);
    self_ = other.self_;
    bucket_ = other.bucket_;
    sequence_ = other.sequence_;
    pages_ = other.pages_;
    return *this;
  }
  ~ClaimedBlock() { CAIRN_DCHECK(catalog_ == nullptr); }

  explicit operator bool() const { return catalog_ != nullptr; }
  BucketIndex bucket() const { return bucket_; }
  std::uint16_t pages() const { return pages_; }        // those that begin_flush() was given
  std::uint32_t sequence() const { return sequence_; }  // the bucket's when the claim began
  void narrow(std::uint16_t pages);  // the flush is of these alone: the others cannot be read

  // `is_stored`: the store has the pages as they were when the flush began. False when something of
  // the block is left dirty that this flush was to store.
  template <typename Pause = NoPause>
  bool end_flush(bool is_stored, const Pause& pause = Pause()) &&;
  // Locks the block again. Empty when it has changed since the claim.
  UnclaimedBlock end_move() &&;

 private:
  friend class LockedBlock;
  ClaimedBlock(const BlockWorker& worker, BucketIndex bucket, std::uint32_t sequence,
               std::uint16_t pages)
      : catalog_(worker.catalog),
        self_(worker.self),
        bucket_(bucket),
        sequence_(sequence),
        pages_(pages) {}
  LockedBlock lock() const { return LockedBlock(BlockWorker{catalog_, self_}, bucket_); }

  const BlockCatalog* catalog_ = nullptr;
  Owner self_;
  BucketIndex bucket_{};
  std::uint32_t sequence_ = 0;
  std::uint16_t pages_ = 0;
};

// Without the lock: the block stays in its bucket, and the bucket where it is, until the last pin
// goes. Writers write and flushers flush it meanwhile.
class PinnedBlock {
 public:
  PinnedBlock() = default;
  PinnedBlock(PinnedBlock&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), bucket_(other.bucket_) {}
  PinnedBlock& operator=(PinnedBlock&& other) noexcept {
    unpin();
    block_ = std::exchange(other.block_, nullptr);
    bucket_ = other.bucket_;
    return *this;
  }
  ~PinnedBlock() { unpin(); }

  explicit operator bool() const { return block_ != nullptr; }
  BucketIndex bucket() const { return bucket_; }
  void unpin();

 private:
  friend class LockedBlock;
  PinnedBlock(BlockDescriptor& block, BucketIndex bucket) : block_(&block), bucket_(bucket) {}

  BlockDescriptor* block_ = nullptr;
  BucketIndex bucket_{};
};

// Where a block is after relocate(), and the bucket that it has left: the caller releases that.
struct Relocated {
  LockedBlock block;
  FreshBlock emptied;
};

template <typename Pause>
FreshBlock UnclaimedBlock::vacate(const Pause& pause) && {
  check();
  CAIRN_DCHECK(!is_held());
  const ObjectIndex object = block_->object_index();
  pause.at_step();
  const bool was_there = catalog_->directory().withdraw(bucket_, owner(), catalog_->owners());
  CAIRN_DCHECK(was_there);
  (void)was_there;
  pause.at_step();
  catalog_->objects().at(object).blocks.fetch_sub(1, std::memory_order_acq_rel);
  empty(Counts::kEnd);
  pause.at_step();
  return FreshBlock(static_cast<BlockLock&&>(*this));
}

template <typename Pause>
Relocated UnclaimedBlock::relocate(FreshBlock fresh, PlacementReason reason,
                                   const Pause& pause) && {
  check();
  CAIRN_DCHECK(!is_held());
  fresh.describe(block_->object_index(), block_->block_number(), reason);
  fresh.take_after(*block_);
  pause.at_step();
  catalog_->pass_relocation(bucket_, fresh.bucket_);
  pause.at_step();
  const bool was_there =
      catalog_->directory().move(bucket_, fresh.bucket_, owner(), catalog_->owners());
  CAIRN_DCHECK(was_there);
  (void)was_there;
  pause.at_step();
  empty(Counts::kGoOn);
  pause.at_step();
  fresh.set_changed();
  return Relocated{LockedBlock(static_cast<BlockLock&&>(fresh)),
                   FreshBlock(static_cast<BlockLock&&>(*this))};
}

template <typename Pause>
bool ClaimedBlock::end_flush(bool is_stored, const Pause& pause) && {
  pause.before_lock(catalog_->block(bucket_));
  LockedBlock block = lock();
  BlockDescriptor& descriptor = *block.block_;
  block.check();
  CAIRN_DCHECK(descriptor.state() == BlockState::kFlushing && descriptor.claimant() == self_);
  // A write since then may have changed the bytes while the device was reading them.
  const bool is_as_stored = is_stored && descriptor.sequence() == sequence_;
  const std::uint16_t dirty = descriptor.dirty_pages();
  const std::uint16_t left = is_as_stored ? dirty & static_cast<std::uint16_t>(~pages_) : dirty;
  descriptor.dirty_pages_.store(left, std::memory_order_release);
  pause.at_step();
  if (left == 0) {
    block.turn_clean(BlockStep::kFlushEnded, pages_);
  } else {
    descriptor.set_state(BlockState::kDirty);
    block.pass(BlockStep::kFlushEnded, BlockState::kFlushing, BlockState::kDirty, pages_);
  }
  pause.at_step();
  descriptor.set_claimant(Owner());
  block.unlock();
  descriptor.wake_claim_waiters();
  catalog_ = nullptr;
  return is_as_stored;
}

}  // namespace cairn
