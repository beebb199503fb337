// SPDX-License-Identifier: Apache-2.0
// Where the search for a free record of a table begins. The cursor walks the table round and round,
// and tells at the same time how far the table was ever used: scans stop there.
//
// Thread safety: any thread of any process.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace cairn {

// The first of `count` records to look at next; they may go on at the table's begin. Requires:
// capacity < 2^30, count <= capacity.
inline std::uint32_t next_records(std::atomic<std::uint32_t>& cursor, std::uint32_t capacity,
                                  std::uint32_t count) {
  // Before the counter wraps it is set back, by whole rounds, to no less than one round.
  constexpr std::uint32_t kHigh = std::uint32_t{1} << 31;
  const std::uint32_t taken = cursor.fetch_add(count, std::memory_order_relaxed);
  const bool crosses = taken <= kHigh && kHigh - taken < count;
  if (crosses) cursor.fetch_sub((kHigh / capacity - 1) * capacity);
  return taken % capacity;
}

inline std::uint32_t next_record(std::atomic<std::uint32_t>& cursor, std::uint32_t capacity) {
  return next_records(cursor, capacity, 1);
}

// Records at this index and above have never been used.
inline std::uint32_t used_records(const std::atomic<std::uint32_t>& cursor,
                                  std::uint32_t capacity) {
  return std::min(cursor.load(std::memory_order_relaxed), capacity);
}

// Says of a table that it is full, so that the next request is answered without a walk over it.
//
// Invariant: freeing a record after the mark was set takes the mark away, and what was
// freed before is found by the walk that follows the setting. So no record stays free behind it; a
// death in between leaves a mark that the next freed record takes away.
//
// Ownership: the word lives in the control segment; without one every claim walks.
class FullMark {
 public:
  FullMark() = default;
  explicit FullMark(std::atomic<std::uint32_t>* word) : word_(word) {}

  // `walk` claims a record and returns its index, or 0 when it has seen them all.
  template <typename Walk>
  std::uint32_t claim(Walk&& walk) const {
    if (word_ != nullptr && word_->load(std::memory_order_relaxed) != 0) return 0;
    std::uint32_t index = walk();
    if (index != 0 || word_ == nullptr) return index;
    word_->store(1, std::memory_order_seq_cst);
    index = walk();
    if (index != 0) word_->store(0, std::memory_order_relaxed);
    return index;
  }
  // Requires: the record was freed by a sequentially consistent operation.
  void note_freed() const {
    if (word_ != nullptr && word_->load(std::memory_order_seq_cst) != 0)
      word_->store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint32_t>* word_ = nullptr;
};

// The records that this process looks at before it asks the cursor again: more each time, so that
// processes that make many meet neither at the cursor nor in a page that both touch first. What a
// process leaves of its run is found a round later.
//
// Ownership: none of the records; lives in the process's own memory and may be copied, by fork()
// too: two that look at the same record claim it one after the other.
class RecordRun {
 public:
  // The record to look at next. Requires: as next_records().
  std::uint32_t next(std::atomic<std::uint32_t>& cursor, std::uint32_t capacity) {
    const std::atomic_ref<std::uint64_t> state(state_);
    std::uint64_t seen = state.load(std::memory_order_relaxed);
    while (left_in(seen) != 0) {
      const std::uint64_t rest = pack(index_in(seen) + 1, left_in(seen) - 1, length_in(seen));
      if (state.compare_exchange_weak(seen, rest, std::memory_order_relaxed))
        return index_in(seen) % capacity;
    }
    const std::uint32_t longest = std::clamp<std::uint32_t>(capacity / kPartOfTable, 1, kMost);
    const std::uint32_t length = std::clamp<std::uint32_t>(2 * length_in(seen), 1, longest);
    const std::uint32_t index = next_records(cursor, capacity, length);
    // Another thread's run may stand there meanwhile; of this one the first record is used then.
    state.compare_exchange_strong(seen, pack(index + 1, length - 1, length),
                                  std::memory_order_relaxed);
    return index;
  }

 private:
  static constexpr std::uint32_t kMost = 128;
  static constexpr std::uint32_t kPartOfTable = 64;

  static std::uint64_t pack(std::uint64_t index, std::uint64_t left, std::uint64_t length) {
    return index << 32 | left << 16 | length;
  }
  static std::uint32_t index_in(std::uint64_t state) {
    return static_cast<std::uint32_t>(state >> 32);
  }
  static std::uint32_t left_in(std::uint64_t state) { return state >> 16 & 0xffff; }
  static std::uint32_t length_in(std::uint64_t state) { return state & 0xffff; }

  alignas(8) std::uint64_t state_ = 0;
};

}  // namespace cairn
