// SPDX-License-Identifier: Apache-2.0
// Put before every source of this suite (-include): std::atomic becomes a type whose every
// operation is a step, at which the Explorer may let another actor go on. So the shipped sources
// run here as they are, with a scheduler between any two of their shared accesses, and the product
// has nothing of it. The idea is Relacy's (D. Vyukov, "Relacy race detector", 2008).
//
// Every operation is sequentially consistent: what depends on weaker orders is for ThreadSanitizer
// (tests/multiprocess) to find.
//
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cairn::stepping {

// What an operation does to its word.
enum class Access : std::uint8_t { kLoad, kStore, kChange };

// Before the operation: another actor may go on. False: what it learns steers nobody.
bool step(const void* address, Access access, std::uint64_t bits);
// After it: what the actor has learned.
void learn(Access access, std::uint64_t bits);
// The actor knows nothing more of its operation but these numbers: a scene says so where it is
// plain, so that fewer states differ.
void forget_all_but(std::initializer_list<std::uint64_t> known);
// The actor spins: it goes on when what it looked at last has changed.
void relax();
// The actor sleeps on a word. False: it was woken by the time.
bool sleep_on(const void* address, std::uint32_t bits, std::uint32_t expected);

template <typename T>
class Atomic {
 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;

  constexpr Atomic() : value_{} {}
  constexpr Atomic(T value) : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const {
    if (step(this, Access::kLoad, bits_of(value_))) learn(Access::kLoad, bits_of(value_));
    return value_;
  }
  operator T() const { return load(); }
  void store(T value, std::memory_order = std::memory_order_seq_cst) {
    step(this, Access::kStore, bits_of(value));
    value_ = value;
  }
  T operator=(T value) {
    store(value);
    return value;
  }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) {
    return change([value](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order,
                               std::memory_order = std::memory_order_seq_cst) {
    return compare_exchange_strong(expected, desired);
  }
  bool compare_exchange_strong(T& expected, T desired) {
    if (step(this, Access::kChange, bits_of(desired))) learn(Access::kChange, bits_of(value_));
    const bool is_as_expected = bits_of(value_) == bits_of(expected);
    if (is_as_expected) {
      value_ = desired;
    } else {
      expected = value_;
    }
    return is_as_expected;
  }
  template <typename... Orders>
  bool compare_exchange_weak(T& expected, T desired, Orders...) {
    return compare_exchange_strong(expected, desired);
  }
  T fetch_add(T by, std::memory_order = std::memory_order_seq_cst) {
    return change([by](T was) { return static_cast<T>(was + by); });
  }
  T fetch_sub(T by, std::memory_order = std::memory_order_seq_cst) {
    return change([by](T was) { return static_cast<T>(was - by); });
  }
  T fetch_or(T with, std::memory_order = std::memory_order_seq_cst) {
    return change([with](T was) { return static_cast<T>(was | with); });
  }
  T fetch_and(T with, std::memory_order = std::memory_order_seq_cst) {
    return change([with](T was) { return static_cast<T>(was & with); });
  }

  // Without a step, for the test's own eyes.
  T peek() const { return value_; }
  void poke(T value) { value_ = value; }

 private:
  static std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  }
  template <typename Next>
  T change(Next&& next) {
    const bool counts = step(this, Access::kChange, bits_of(value_));
    const T was = value_;
    value_ = next(was);
    if (counts) learn(Access::kChange, bits_of(was));
    return was;
  }

  alignas(sizeof(T)) T value_;
};

}  // namespace cairn::stepping

namespace std {
template <typename T>
using stepped_atomic = cairn::stepping::Atomic<T>;
}  // namespace std

#define atomic stepped_atomic

// The kernel's part: it lets an actor sleep, and says what time it is. Here it is always the same
// time, because the states of two orders are compared.
#define futex_wait futex_wait_in_kernel
#define futex_wake futex_wake_in_kernel
#define monotonic_coarse_ms monotonic_coarse_ms_of_kernel
#include "base/futex.h"
#undef futex_wait
#undef futex_wake
#undef monotonic_coarse_ms
#define __builtin_ia32_pause() ::cairn::stepping::relax()

namespace cairn {

inline bool futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t expected, int) {
  return stepping::sleep_on(&word, word.peek(), expected);
}
// Sleepers are woken by the change itself.
inline void futex_wake(const std::atomic<std::uint32_t>&, int = INT_MAX) {}
inline std::uint32_t monotonic_coarse_ms() { return 1000; }

}  // namespace cairn
