// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block.h"

#include <time.h>

namespace cairn {
namespace {

constexpr int kSpins = 200;
constexpr int kSleepMs = 20;
// Sleeps that signals or wakes ended, until a look whether the owner lives.
constexpr int kSleepsMax = 64;
// Sleeps until pins without a claim are taken for forgotten: a second.
constexpr int kPinnedSleepsMax = 50;

// The futex word is the low half of the 64-bit word: owner and waiters bit.
const std::atomic<std::uint32_t>& low_half(const std::atomic<std::uint64_t>& word) {
  return *reinterpret_cast<const std::atomic<std::uint32_t>*>(&word);
}

}  // namespace

bool BlockDescriptor::try_lock(Owner self) {
  std::uint64_t seen = word_.load(std::memory_order_relaxed);
  if (is_locked(seen)) return false;
  enter_signal_gate();
  const bool is_ours =
      word_.compare_exchange_strong(seen, seen | self.bits(), std::memory_order_acquire);
  if (is_ours) {
    order_after_lock();
  } else {
    leave_signal_gate();
  }
  return is_ours;
}

bool BlockDescriptor::wait_for_lock(Owner self, const OwnerTable& owners) {
  for (int spin = 0;; ++spin) {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    if (!is_locked(seen)) {
      const std::uint64_t waiters = spin < kSpins ? 0 : kWaiters;
      if (word_.compare_exchange_weak(seen, seen | self.bits() | waiters,
                                      std::memory_order_acquire)) {
        order_after_lock();
        return false;
      }
      continue;
    }
    if (spin < kSpins) {
      cpu_relax();
      continue;
    }
    if (!owners.is_alive(owner_in(seen))) {
      // The dead owner may have changed anything: a reader that began before it must not accept its
      // copy, even if the new owner changes nothing.
      const std::uint64_t taken =
          ((seen & ~std::uint64_t{Owner::kMask}) | self.bits() | kWaiters) + kSequenceStep;
      if (word_.compare_exchange_weak(seen, taken, std::memory_order_acquire)) {
        order_after_lock();
        repair_after_steal();
        return true;
      }
      continue;
    }
    if ((seen & kWaiters) == 0 &&
        !word_.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed)) {
      continue;
    }
    const auto low = static_cast<std::uint32_t>(seen | kWaiters);
    if (!futex_wait(low_half(word_), low, kSleepMs) || spin % kSleepsMax == 0)
      owners.look_after(owner_in(seen));
  }
}

void BlockDescriptor::wake_waiters() { futex_wake(low_half(word_)); }

void BlockDescriptor::wait_for_holders(const OwnerTable& owners) {
  if (wait_until_free(owners, ~0U)) return;
  // A pin lasts as long as a call. These are a dead process's, or a stray store into shared memory.
  claim_.fetch_and(Owner::kMask, std::memory_order_acq_rel);
}

bool BlockDescriptor::wait_until_free(const OwnerTable& owners, std::uint32_t mask) const {
  int pinned_sleeps = 0;
  for (int sleep = 1;; ++sleep) {
    const std::uint32_t claim = claim_.load(std::memory_order_acquire);
    const Owner owner = claimant_in(claim);
    const bool is_pinned = pins_in(claim & mask) != 0;
    const bool is_claimed = owner && owners.is_alive(owner);
    if (!is_pinned && !is_claimed) return true;
    if (!is_claimed && ++pinned_sleeps > kPinnedSleepsMax) return false;
    if (!futex_wait(claim_, claim, kSleepMs) || sleep % kSleepsMax == 0) owners.look_after(owner);
  }
}

void BlockDescriptor::wake_claim_waiters() const { futex_wake(claim_); }

bool BlockDescriptor::release_dead_claim(const OwnerTable& owners) {
  std::uint32_t seen = claim_.load(std::memory_order_relaxed);
  while (claimant_in(seen) && !owners.is_alive(claimant_in(seen))) {
    if (claim_.compare_exchange_weak(seen, seen & ~Owner::kMask, std::memory_order_acq_rel))
      return true;
  }
  return false;
}

// The dead owner may have been anywhere between two stores; the masks speak only of bytes that are
// there.
void BlockDescriptor::repair_after_steal() {
  // The seal may be for the sequence that this lock ends with, and bytes may change before that.
  sealed_pages_.store(0, std::memory_order_relaxed);
  const BlockState now = state_.load(std::memory_order_relaxed);
  if (now == BlockState::kFree) return;
  const std::uint16_t dirty = dirty_pages() & valid_pages();
  dirty_pages_.store(dirty, std::memory_order_relaxed);
  // A flush in flight goes on. One that has taken the last dirty page away has died at that moment:
  // a block that counts as dirty without a dirty page would not be counted when it is written.
  if (now == BlockState::kFlushing && dirty != 0) return;
  state_.store(dirty != 0 ? BlockState::kDirty : BlockState::kClean, std::memory_order_relaxed);
}

}  // namespace cairn
