// SPDX-License-Identifier: Apache-2.0
// Which of the process's descriptors are ours: one atomic load per call decides.
//
// A fixed array in bss, indexed by descriptor; pages that nobody touches cost nothing. Numbers past
// the end are never buffered.
//
// Thread safety: find() from any thread and any signal handler; set() and take() from any thread,
// but for the time between freeze() and thaw() only from the thread that froze the table. A close
// takes the record out before it gives the hold back, so in a frozen table each record has its
// hold.
#pragma once

#include <atomic>
#include <cstdint>

namespace cairn {

struct OpenFile;

class DescriptorTable {
 public:
  static constexpr int kDescriptorsMax = 1 << 20;
  // Numbers from here on are not tracked; less than kDescriptorsMax in tests alone.
  static int limit() { return limit_; }
  static void set_limit(int limit) { limit_ = limit; }

  // The record behind `fd`, or null when it is not ours. Any int is allowed.
  static OpenFile* find(int fd) {
    if (static_cast<unsigned>(fd) >= static_cast<unsigned>(kDescriptorsMax)) return nullptr;
    return entry(fd).load(std::memory_order_acquire);
  }
  // Returns what the entry had before, which no descriptor stands for any more (null: nothing).
  // Requires: 0 <= fd < kDescriptorsMax. Does not count; see OpenFile::count.
  [[nodiscard]] static OpenFile* set(int fd, OpenFile* file);
  // Clears the entry and returns what was there.
  static OpenFile* take(int fd);

  // Around a fork. begin_child() thaws the copy of the table in the child.
  static void freeze();
  static void thaw();
  static void begin_child();

  // True when at least one descriptor is tracked.
  static bool any() { return count_.load(std::memory_order_relaxed) > 0; }
  // Largest tracked descriptor so far (never shrinks), -1 when there was none.
  static int highest() { return highest_.load(std::memory_order_acquire); }

  // visit(int fd, OpenFile& file) for every tracked descriptor in [first, last], ascending.
  template <typename Visit>
  static void for_each(Visit&& visit, int first = 0, int last = kDescriptorsMax - 1) {
    const int end = last < highest() ? last : highest();
    for (int fd = first < 0 ? 0 : first; fd <= end; ++fd) {
      OpenFile* file = entry(fd).load(std::memory_order_acquire);
      if (file != nullptr) visit(fd, *file);
    }
  }

 private:
  // Plain pointers under atomic references: an array of a million atomics is more than a compiler's
  // constant evaluation takes, and a constructor that runs would touch all of its 8 MiB.
  static std::atomic_ref<OpenFile*> entry(int fd) {
    return std::atomic_ref<OpenFile*>(entries_[fd]);
  }
  static OpenFile* entries_[kDescriptorsMax];
  static std::atomic<int> highest_;
  static std::atomic<int> count_;
  static int limit_;
};

}  // namespace cairn
