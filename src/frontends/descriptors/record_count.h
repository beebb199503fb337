// SPDX-License-Identifier: Apache-2.0
// The users of an open file's record: the application's descriptors of it in this process, and the
// calls under way that use what is behind it. The record ends with the last of both.
//
//   begin() -> 1 descriptor --add/drop_descriptor(), add/drop_call()--> nothing: the record ends
//
// Thread safety: any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

class RecordCount {
 public:
  // With the first descriptor. All that the record has by then is seen by those who count on it.
  void begin() { word_.store(kDescriptor, std::memory_order_release); }
  void clear() { word_.store(0, std::memory_order_relaxed); }

  std::uint32_t descriptors() const { return descriptors_in(word_.load()); }
  bool is_none() const { return word_.load(std::memory_order_relaxed) == 0; }
  // Whether somebody is counted besides one descriptor.
  bool has_others() const { return word_.load() > kDescriptor; }

  // False: the record ends, or has ended.
  bool add_descriptor() { return add(kDescriptor); }
  bool add_call() { return add(kCall); }
  // Whether that was the last one of both.
  bool drop_descriptor() { return drop(kDescriptor); }
  bool drop_call() { return drop(kCall); }
  // The last descriptor, unless somebody else is counted.
  bool drop_if_alone() {
    std::uint64_t alone = kDescriptor;
    return word_.compare_exchange_strong(alone, 0, std::memory_order_acq_rel);
  }

  // The child of a fork has its parent's descriptors, and neither its calls nor what other threads
  // were about to count: in between, its descriptors are added anew.
  void begin_recount() {
    if (!is_none()) word_.store(kUnderRecount, std::memory_order_relaxed);
  }
  // Whether there was something, and nothing is left.
  bool end_recount() {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    word_.store(word & ~kUnderRecount, std::memory_order_relaxed);
    return word == kUnderRecount;
  }

 private:
  static constexpr std::uint64_t kUnderRecount = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kDescriptor = 1;
  static constexpr std::uint64_t kCall = std::uint64_t{1} << 32;

  static std::uint32_t descriptors_in(std::uint64_t word) {
    return static_cast<std::uint32_t>(word);
  }
  bool add(std::uint64_t what) {
    std::uint64_t seen = word_.load(std::memory_order_relaxed);
    while (seen != 0) {
      if (word_.compare_exchange_weak(seen, seen + what, std::memory_order_acq_rel)) return true;
    }
    return false;
  }
  bool drop(std::uint64_t what) { return word_.fetch_sub(what, std::memory_order_acq_rel) == what; }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace cairn
