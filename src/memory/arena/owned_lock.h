// SPDX-License-Identifier: Apache-2.0
// A mutual-exclusion lock in shared memory that outlives the death of its holder.
//
// Invariants
//  1. The word is 0 when free, else it holds the owner and possibly the waiters bit.
//  2. A holder that died (its slot's generation advanced) can be replaced by any waiter in one
//     compare-and-swap. The new holder learns it (`Acquired::kStolen`) and repairs what the
//     lock protects before it goes on.
//  3. No wait is unbounded in the kernel: every sleep ends after kSleepMs, and the waiter checks
//     the owner's generation again; after sleeps in vain it looks for the owner's process
//     (OwnerTable::look_after()).
//
// The lock is not recursive, and two threads of one process exclude each other although they share
// an owner.
//
// Thread safety: that is its purpose. Never held across a cancellation point or an application
// callback.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/futex.h"
#include "base/signal_gate.h"
#include "memory/arena/owner.h"

namespace cairn {

inline void cpu_relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield");
#endif
}

class OwnedLock {
 public:
  enum class Acquired : std::uint8_t { kFree, kStolen };

  // Requires: `self` is alive and does not hold this lock in this thread.
  Acquired lock(Owner self, const OwnerTable& owners) {
    CAIRN_DCHECK(static_cast<bool>(self));
    enter_signal_gate();
    std::uint32_t expected = 0;
    if (word_.compare_exchange_strong(expected, self.bits(), std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return Acquired::kFree;
    }
    return lock_slow(self, owners);
  }

  bool try_lock(Owner self) {
    enter_signal_gate();
    std::uint32_t expected = 0;
    const bool is_ours = word_.compare_exchange_strong(
        expected, self.bits(), std::memory_order_acquire, std::memory_order_relaxed);
    if (!is_ours) leave_signal_gate();
    return is_ours;
  }

  void unlock(Owner self) {
    const std::uint32_t before = word_.exchange(0, std::memory_order_release);
    CAIRN_DCHECK((before & Owner::kMask) == self.bits());
    (void)self;
    if ((before & kWaiters) != 0) futex_wake(word_, 1);
    leave_signal_gate();
  }

  // Frees the lock if `dead` still holds it; used by the service's sweep after a death.
  bool release_if_held_by(Owner dead) {
    CAIRN_DCHECK(static_cast<bool>(dead));
    std::uint32_t seen = word_.load(std::memory_order_acquire);
    while ((seen & Owner::kMask) == dead.bits()) {
      if (word_.compare_exchange_weak(seen, 0, std::memory_order_acq_rel)) {
        futex_wake(word_);
        return true;
      }
    }
    return false;
  }

  Owner holder() const { return Owner::from_bits(word_.load(std::memory_order_acquire)); }

 private:
  static constexpr std::uint32_t kWaiters = std::uint32_t{1} << 31;
  static_assert((kWaiters & Owner::kMask) == 0);
  static constexpr int kSpins = 100;
  static constexpr int kSleepMs = 20;
  static constexpr int kSleepsMax = 64;  // until the waiter looks for the owner's process

  Acquired lock_slow(Owner self, const OwnerTable& owners) {
    for (int spin = 0;; ++spin) {
      std::uint32_t seen = word_.load(std::memory_order_relaxed);
      if (seen == 0) {
        // Past the spins others may sleep behind us, so the waiters bit is set to have unlock()
        // wake one.
        const std::uint32_t mine = spin < kSpins ? self.bits() : (self.bits() | kWaiters);
        if (word_.compare_exchange_weak(seen, mine, std::memory_order_acquire)) {
          return Acquired::kFree;
        }
        continue;
      }
      if (spin < kSpins) {
        cpu_relax();
        continue;
      }
      if (!owners.is_alive(Owner::from_bits(seen))) {
        if (word_.compare_exchange_weak(seen, self.bits() | kWaiters, std::memory_order_acquire)) {
          return Acquired::kStolen;
        }
        continue;
      }
      if ((seen & kWaiters) == 0 &&
          !word_.compare_exchange_weak(seen, seen | kWaiters, std::memory_order_relaxed)) {
        continue;
      }
      // Signals may end every sleep before its time.
      const bool is_woken = futex_wait(word_, seen | kWaiters, kSleepMs);
      if (!is_woken || spin % kSleepsMax == 0) owners.look_after(Owner::from_bits(seen));
    }
  }

  std::atomic<std::uint32_t> word_{0};
};
static_assert(sizeof(OwnedLock) == 4, "the futex word is the whole lock");

// Holds an OwnedLock for a scope.
class OwnedGuard {
 public:
  OwnedGuard(OwnedLock& lock, Owner self, const OwnerTable& owners)
      : lock_(lock), self_(self), acquired_(lock.lock(self, owners)) {}
  ~OwnedGuard() { lock_.unlock(self_); }
  OwnedGuard(const OwnedGuard&) = delete;
  OwnedGuard& operator=(const OwnedGuard&) = delete;
  bool was_stolen() const { return acquired_ == OwnedLock::Acquired::kStolen; }

 private:
  OwnedLock& lock_;
  Owner self_;
  OwnedLock::Acquired acquired_;
};

}  // namespace cairn
