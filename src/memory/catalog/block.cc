// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/block.h"

#include <time.h>

namespace cairn {
namespace {

constexpr int kSpins = 200;
constexpr int kSleepMs = 20;
// Sleeps that signals or wakes ended, until the owner's life is asked for.
constexpr int kSleepsMax = 64;

// The futex word is the low half of the 64-bit word: owner and waiters bit.
const std::atomic<std::uint32_t>& low_half(const std::atomic<std::uint64_t>& word) {
  return *reinterpret_cast<const std::atomic<std::uint32_t>*>(&word);
}

}  // namespace

bool BlockDescriptor::try_lock(Owner self) {
  std::uint64_t seen = word.load(std::memory_order_relaxed);
  if (is_locked(seen)) return false;
  enter_signal_gate();
  const bool is_ours =
      word.compare_exchange_strong(seen, seen | self.bits(), std::memory_order_acquire);
  if (is_ours) {
    order_after_lock();
  } else {
    leave_signal_gate();
  }
  return is_ours;
}

bool BlockDescriptor::wait_for_lock(Owner self, const OwnerTable& owners) {
  for (int spin = 0;; ++spin) {
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (!is_locked(seen)) {
      const std::uint64_t waiters = spin < kSpins ? 0 : kWaiters;
      if (word.compare_exchange_weak(seen, seen | self.bits() | waiters,
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
      if (word.compare_exchange_weak(seen, taken, std::memory_order_acquire)) {
        order_after_lock();
        repair_after_steal();
        return true;
      }
      continue;
    }
    if ((seen & kWaiters) == 0 &&
        !word.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed)) {
      continue;
    }
    const auto low = static_cast<std::uint32_t>(seen | kWaiters);
    if (!futex_wait(low_half(word), low, kSleepMs) || spin % kSleepsMax == 0)
      owners.look_after(owner_in(seen));
  }
}

void BlockDescriptor::wake_waiters() { futex_wake(low_half(word)); }

bool BlockDescriptor::is_clean_place_of(ObjectIndex object, BlockNumber number) const {
  const std::uint64_t before = word.load(std::memory_order_acquire);
  if (is_locked(before)) return false;
  // A bucket that the block has just left has no dirty page either.
  const bool is_place = identity.load(std::memory_order_acquire) == identity_of(object, number);
  if (!is_place || dirty_pages.load(std::memory_order_acquire) != 0) return false;
  const std::uint64_t after = word.load(std::memory_order_relaxed);
  return ((before ^ after) & ~(kWaiters | kUnread)) == 0;
}

bool BlockDescriptor::is_flushing(const OwnerTable& owners) const {
  const std::uint32_t bits = flusher.load(std::memory_order_acquire);
  return bits != 0 && owners.is_alive(Owner::from_bits(bits));
}

void BlockDescriptor::wait_for_flusher(const OwnerTable& owners) const {
  for (int sleep = 1;; ++sleep) {
    const std::uint32_t bits = flusher.load(std::memory_order_acquire);
    if (bits == 0 || !owners.is_alive(Owner::from_bits(bits))) return;
    if (!futex_wait(flusher, bits, kSleepMs) || sleep % kSleepsMax == 0)
      owners.look_after(Owner::from_bits(bits));
  }
}

void BlockDescriptor::enter(BlockState next) {
  CAIRN_DCHECK(is_legal_transition(state.load(std::memory_order_relaxed), next));
  state.store(next, std::memory_order_relaxed);
}

// The dead owner may have been anywhere between two stores; the masks speak only of bytes that are
// there.
void BlockDescriptor::repair_after_steal() {
  const BlockState now = state.load(std::memory_order_relaxed);
  if (now == BlockState::kFree || now == BlockState::kFlushing) return;
  const bool dirty = dirty_pages.load(std::memory_order_relaxed) != 0;
  state.store(dirty ? BlockState::kDirty : BlockState::kClean, std::memory_order_relaxed);
}

}  // namespace cairn
