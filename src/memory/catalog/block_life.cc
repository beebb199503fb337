// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block_life.h"

#include "base/crash_point.h"

namespace cairn {

// The owner died holding the lock. If that was between taking the block out of the directory (or
// moving it to another bucket) and freeing the bucket, then the descriptor's words are history:
// a waiter must look for the block again, and the service's sweep frees the bucket.
[[gnu::cold]] void BlockLock::settle_stolen() {
  const ObjectIndex object = block_->object_index();
  if (object == ObjectIndex::kNone) return;
  catalog_->directory().count_arrival(bucket_);
  if (catalog_->directory().find(object, block_->block_number()) == bucket_) {
    // It may have died on the way to another bucket, with the mark there already.
    if (block_->dirty_pages() != 0) catalog_->dirty().mark(bucket_);
    return;
  }
  forget_block();
}

void BlockLock::forget_block() {
  block_->clear_identity();
  block_->dirty_pages_.store(0, std::memory_order_relaxed);
  block_->valid_pages_.store(0, std::memory_order_relaxed);
}

void BlockLock::turn_clean(BlockStep step, std::uint16_t pages) {
  CAIRN_DCHECK(block_->dirty_pages() == 0);
  const BlockState from = block_->state();
  CAIRN_DCHECK(counts_as_dirty(from));
  CAIRN_CRASH_POINT("block.turning-clean");
  block_->set_state(BlockState::kClean);
  pass(step, from, BlockState::kClean, pages);
  CAIRN_CRASH_POINT("block.clean");
  check();
}

void BlockLock::empty(Counts counts) {
  const BlockState from = block_->state();
  const std::uint16_t pages = block_->valid_pages();
  block_->dirty_pages_.store(0, std::memory_order_relaxed);
  block_->valid_pages_.store(0, std::memory_order_relaxed);
  CAIRN_CRASH_POINT("block.without-pages");
  // A flusher that died left its state behind; the caller has made sure that none is alive.
  if (from == BlockState::kFlushing) block_->set_state(BlockState::kDirty);
  if (from != BlockState::kFree) block_->set_state(BlockState::kFree);
  CAIRN_CRASH_POINT("block.free");
  if (counts == Counts::kEnd) pass(BlockStep::kVacated, from, BlockState::kFree, pages);
  CAIRN_CRASH_POINT("block.vacated");
  block_->clear_identity();
  if (block_->is_unproven()) block_->take_unproven();
  set_changed();
  check();
}

FreshBlock FreshBlock::take_over(LockedBlock orphan) {
  CAIRN_DCHECK(orphan.descriptor().object_index() == ObjectIndex::kNone);
  orphan.empty(Counts::kGoOn);
  return FreshBlock(static_cast<BlockLock&&>(orphan));
}

void FreshBlock::describe(ObjectIndex object, BlockNumber number, PlacementReason reason) {
  check();
  CAIRN_DCHECK(object != ObjectIndex::kNone && block_->state() == BlockState::kFree);
  CAIRN_DCHECK(block_->pins() == 0 && block_->valid_pages() == 0);
  const std::uint32_t now = monotonic_coarse_ms();
  block_->set_identity(object, number);
  CAIRN_CRASH_POINT("block.named");
  // The dead, and stray stores, may have left a name, pins or pages here.
  block_->claim_.store(0, std::memory_order_release);
  block_->set_pages(0, 0);
  block_->recency_ms_.store(now, std::memory_order_relaxed);
  block_->frequency_.store(1, std::memory_order_relaxed);
  block_->placed_ms_.store(now, std::memory_order_relaxed);
  block_->reason_.store(static_cast<std::uint8_t>(reason), std::memory_order_relaxed);
  (void)block_->take_unread();
  block_->set_state(BlockState::kFilling);
}

void FreshBlock::take_after(const BlockDescriptor& old) {
  CAIRN_DCHECK((old.valid_pages() >> pages_in(block_->size_class())) == 0);
  block_->recency_ms_.store(old.recency_ms(), std::memory_order_relaxed);
  block_->frequency_.store(old.frequency(), std::memory_order_relaxed);
  block_->dirty_since_ms_.store(old.dirty_since_ms(), std::memory_order_relaxed);
  block_->set_pages(old.valid_pages(), old.dirty_pages());
  block_->set_state(counts_as_dirty(old.state()) ? BlockState::kDirty : BlockState::kClean);
  check();
}

BucketIndex FreshBlock::publish(ObjectIndex object, BlockNumber number, PlacementReason reason,
                                LockedBlock* block) {
  describe(object, number, reason);
  Object& record = catalog_->objects().at(object);
  record.count_block(number);
  CAIRN_CRASH_POINT("block.counted");
  const BucketIndex place = catalog_->directory().publish(bucket_, owner(), catalog_->owners());
  CAIRN_CRASH_POINT("block.in-directory");
  if (place != bucket_) {
    record.blocks.fetch_sub(1, std::memory_order_acq_rel);
    empty(Counts::kGoOn);
    return place;
  }
  pass(BlockStep::kPublished, BlockState::kFree, BlockState::kFilling, 0);
  CAIRN_CRASH_POINT("block.published");
  set_changed();
  *block = LockedBlock(static_cast<BlockLock&&>(*this));
  return place;
}

LockedBlock LockedBlock::try_lock(const BlockWorker& worker, BucketIndex bucket) {
  LockedBlock block;
  if (worker.catalog->block(bucket).try_lock(worker.self))
    block = LockedBlock(worker, bucket, kIsLocked);
  return block;
}

void LockedBlock::fill(std::uint16_t pages) {
  check();
  const BlockState from = block_->state();
  CAIRN_DCHECK(from != BlockState::kFree);
  CAIRN_DCHECK((block_->dirty_pages() & pages & ~block_->valid_pages()) == 0);
  block_->valid_pages_.store(static_cast<std::uint16_t>(block_->valid_pages() | pages),
                             std::memory_order_release);
  CAIRN_CRASH_POINT("block.valid");
  const BlockState to = from == BlockState::kFilling ? BlockState::kClean : from;
  if (to != from) block_->set_state(to);
  pass(BlockStep::kFilled, from, to, pages);
  CAIRN_CRASH_POINT("block.filled");
  set_changed();
  check();
}

void LockedBlock::seal(std::uint16_t pages) {
  check();
  CAIRN_DCHECK((pages & ~block_->valid_pages()) == 0);
  CAIRN_DCHECK(sequence_after_unlock() != block_->sequence());
  // Some pages were sealed before this lock, others under it.
  const std::uint16_t before = block_->sealed_pages(block_->sequence());
  const std::uint16_t just_now = block_->sealed_pages(sequence_after_unlock());
  block_->set_sealed(sequence_after_unlock(),
                     static_cast<std::uint16_t>(before | just_now | pages));
}

void LockedBlock::turn_dirty() {
  check();
  const std::uint16_t valid = block_->valid_pages();
  if (valid == 0) return;
  const BlockState from = block_->state();
  const BlockState to = counts_as_dirty(from) ? from : BlockState::kDirty;
  pass(BlockStep::kRedirtied, from, to, valid);
  CAIRN_CRASH_POINT("block.redirtied");
  if (to != from) block_->set_state(to);
  block_->dirty_pages_.store(valid, std::memory_order_release);
  set_changed();
  check();
}

bool LockedBlock::mend(SizeClass size_class) {
  const auto size = static_cast<std::uint8_t>(size_class);
  const auto inside = static_cast<std::uint16_t>((1U << pages_in(size_class)) - 1);
  const auto valid = static_cast<std::uint16_t>(block_->valid_pages() & inside);
  const auto dirty = static_cast<std::uint16_t>(block_->dirty_pages() & valid);
  const BlockState from = block_->state();
  const bool is_known = from > BlockState::kFree && static_cast<unsigned>(from) < kBlockStates;
  const bool is_sound = is_known && agrees(from, valid, dirty) && block_->size_class_ == size &&
                        block_->valid_pages() == valid && block_->dirty_pages() == dirty;
  if (is_sound) return false;
  block_->size_class_ = size;
  block_->dirty_pages_.store(dirty, std::memory_order_release);
  block_->valid_pages_.store(valid, std::memory_order_release);
  const BlockState to = dirty == 0 ? BlockState::kClean : BlockState::kDirty;
  const bool was_counted = is_known && counts_as_dirty(from);
  block_->state_.store(BlockState::kClean, std::memory_order_relaxed);
  if (to == BlockState::kDirty && !was_counted)
    pass(BlockStep::kRedirtied, BlockState::kClean, to, dirty);
  block_->state_.store(to, std::memory_order_relaxed);
  set_changed();
  return true;
}

FreshBlock LockedBlock::disown(SizeClass size_class) && {
  forget_block();
  if (static_cast<unsigned>(block_->state()) >= kBlockStates)
    block_->state_.store(BlockState::kClean, std::memory_order_relaxed);
  FreshBlock fresh = FreshBlock::take_over(static_cast<LockedBlock&&>(*this));
  fresh.set_size_class(size_class);
  return fresh;
}

ClaimedBlock LockedBlock::begin_flush(std::uint16_t pages) && {
  check();
  CAIRN_DCHECK(!is_claimed());
  CAIRN_DCHECK(pages != 0 && (pages & ~block_->dirty_pages()) == 0);
  const BlockState from = block_->state();
  CAIRN_CRASH_POINT("block.claiming");
  block_->set_claimant(owner());
  block_->set_state(BlockState::kFlushing);
  pass(BlockStep::kFlushBegan, from, BlockState::kFlushing, pages);
  CAIRN_CRASH_POINT("block.flushing");
  ClaimedBlock claim(worker(), bucket_, sequence_after_unlock(), pages);
  unlock();
  return claim;
}

ClaimedBlock LockedBlock::begin_move() && {
  check();
  CAIRN_DCHECK(!is_held());
  CAIRN_DCHECK(block_->has_bytes());
  block_->set_claimant(owner());
  ClaimedBlock claim(worker(), bucket_, sequence_after_unlock(), 0);
  CAIRN_CRASH_POINT("block.moving");
  unlock();
  return claim;
}

PinnedBlock LockedBlock::pin() && {
  check();
  CAIRN_DCHECK(block_->object_index() != ObjectIndex::kNone);
  PinnedBlock pinned;
  // Pins are counted under the lock alone; unpin() takes them away beside it.
  if (block_->pins() == BlockDescriptor::kPinsMax) return pinned;
  block_->claim_.fetch_add(BlockDescriptor::kPin, std::memory_order_acq_rel);
  pinned = PinnedBlock(*block_, bucket_);
  unlock();
  return pinned;
}

void PinnedBlock::unpin() {
  if (block_ == nullptr) return;
  const std::uint32_t before =
      block_->claim_.fetch_sub(BlockDescriptor::kPin, std::memory_order_acq_rel);
  CAIRN_DCHECK(BlockDescriptor::pins_in(before) != 0);
  if (BlockDescriptor::pins_in(before) == 1) block_->wake_claim_waiters();
  block_ = nullptr;
}

void LockedBlock::unlock_and_wait() && {
  BlockDescriptor& block = *block_;
  unlock();
  block.wait_for_holders(catalog_->owners());
}

void WritableBlock::give_up() {
  BlockDescriptor& descriptor = *lock_->block_;
  CAIRN_CRASH_POINT("block.write-lost");
  lock_->set_changed();
  if (descriptor.dirty_pages() == 0) lock_->turn_clean(BlockStep::kWriteLost, pages_);
  lock_ = nullptr;
}

void UnclaimedBlock::cut(std::uint16_t kept) {
  check();
  CAIRN_DCHECK(!is_held());
  const auto gone = static_cast<std::uint16_t>(block_->valid_pages() & ~kept);
  const auto dirty = static_cast<std::uint16_t>(block_->dirty_pages() & kept);
  // Valid bits first: a process that takes the lock over after a death clears the dirty ones.
  block_->valid_pages_.store(static_cast<std::uint16_t>(block_->valid_pages() & kept),
                             std::memory_order_release);
  CAIRN_CRASH_POINT("block.cut-valid");
  block_->dirty_pages_.store(dirty, std::memory_order_release);
  set_changed();
  CAIRN_CRASH_POINT("block.cut");
  const BlockState state = block_->state();
  if (dirty == 0 && counts_as_dirty(state)) {
    turn_clean(BlockStep::kCut, gone);
  } else {
    pass(BlockStep::kCut, state, state, gone);
  }
  check();
}

void ClaimedBlock::narrow(std::uint16_t pages) {
  CAIRN_DCHECK(pages != 0 && (pages & ~pages_) == 0);
  pages_ = pages;
}

UnclaimedBlock ClaimedBlock::end_move() && {
  LockedBlock block = lock();
  BlockDescriptor& descriptor = *block.block_;
  CAIRN_DCHECK(descriptor.claimant() == self_);
  const bool is_unchanged = descriptor.sequence() == sequence_;
  CAIRN_CRASH_POINT("block.move-ending");
  descriptor.set_claimant(Owner());
  catalog_ = nullptr;
  UnclaimedBlock unclaimed;
  if (is_unchanged) unclaimed = UnclaimedBlock(block);
  block.unlock();
  descriptor.wake_claim_waiters();
  return unclaimed;
}

}  // namespace cairn
