// SPDX-License-Identifier: Apache-2.0
// Changes that no program makes to a descriptor: a test forges the state that another process
// leaves behind.
//
// Thread safety: as the descriptor's. Ownership: borrows the descriptor.
#pragma once

#include "memory/catalog/block_life.h"

namespace cairn {

class BlockProbe {
 public:
  explicit BlockProbe(BlockDescriptor& block) : block_(block) {}

  // As `owner` leaves it who dies, or stops, in the middle of a change.
  void lock_as(Owner owner) const {
    for (;;) {
      std::uint64_t seen = block_.word_.load();
      if (!BlockDescriptor::is_locked(seen) &&
          block_.word_.compare_exchange_weak(seen, seen | owner.bits()))
        return;
    }
  }
  // The word of a lock that nobody has taken through a handle.
  bool lock(Owner self, const OwnerTable& owners) const { return block_.lock(self, owners); }
  void unlock(Owner self) const { block_.unlock(self, 0); }
  // Unlocks after lock_as(): readers see that something has changed.
  void end_lock_as(Owner owner) const {
    enter_signal_gate();
    block_.unlock(owner, BlockDescriptor::kSequenceStep);
  }
  // As of one who flushes or moves the block.
  void claim_as(Owner owner) const { block_.set_claimant(owner); }
  // As somebody leaves it who pinned the block and died.
  void leave_a_pin() const { block_.claim_.fetch_add(BlockDescriptor::kPin); }
  void set_identity(ObjectIndex object, BlockNumber number) const {
    block_.set_identity(object, number);
  }
  void clear_identity() const { block_.clear_identity(); }
  void set_pages(std::uint16_t valid, std::uint16_t dirty) const { block_.set_pages(valid, dirty); }
  void set_state(BlockState state) const { block_.state_.store(state); }
  void set_reason(PlacementReason reason) const {
    block_.reason_.store(static_cast<std::uint8_t>(reason));
  }
  void set_recency(std::uint32_t now_ms) const { block_.recency_ms_.store(now_ms); }
  void set_unread(std::uint8_t predictor) const { block_.set_unread(predictor); }

 private:
  BlockDescriptor& block_;
};

}  // namespace cairn
