// SPDX-License-Identifier: Apache-2.0
// The bell of a service thread: it sleeps on the word, and any process wakes it.
//
// The sleeper announces itself, looks for work once more and then sleeps. So a ring costs one load
// while the thread is awake, and no work that came before a ring is slept through.
//
// Thread safety: one sleeper; any thread of any process rings. All zeros is a valid bell.
// Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/futex.h"

namespace cairn {

class Bell {
 public:
  // Wakes the sleeper if it sleeps.
  void ring() {
    if (sleeping_.load(std::memory_order_seq_cst) != 0) ring_anyway();
  }
  // The same for many that ring at once: the first of them is enough to wake it.
  void ring_once() {
    if (sleeping_.load(std::memory_order_seq_cst) == 0) return;
    if (sleeping_.exchange(0) != 0) ring_anyway();
  }
  // Ends the sleep under way, and the next one if that began to listen before.
  void ring_anyway() {
    rings_.fetch_add(1, std::memory_order_acq_rel);
    futex_wake(rings_);
  }

  // The sleeper's own: how often it has rung, to be asked before the look for work.
  std::uint32_t listen() const { return rings_.load(std::memory_order_acquire); }
  // Sleeps until it has rung since `heard`, or for `timeout_ms`; not at all if `has_work()`.
  template <typename HasWork>
  void sleep(std::uint32_t heard, int timeout_ms, HasWork&& has_work) {
    announce();
    if (!has_work()) futex_wait(rings_, heard, timeout_ms);
    retire();
  }
  // The steps of sleep(), for a sleeper that learns only between them how long it may sleep.
  void announce() { sleeping_.store(1, std::memory_order_seq_cst); }
  void wait(std::uint32_t heard, int timeout_ms) { futex_wait(rings_, heard, timeout_ms); }
  void retire() { sleeping_.store(0, std::memory_order_seq_cst); }

 private:
  std::atomic<std::uint32_t> rings_;  // futex
  std::atomic<std::uint32_t> sleeping_;
};
static_assert(sizeof(Bell) == 8, "the futex word and the sleeper's announcement");

}  // namespace cairn
