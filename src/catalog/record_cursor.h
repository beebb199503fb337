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

// The record to look at next. Requires: capacity < 2^30.
inline std::uint32_t next_record(std::atomic<std::uint32_t>& cursor, std::uint32_t capacity) {
  // Before the counter wraps it is set back, by whole rounds, to no less than one round.
  constexpr std::uint32_t kHigh = std::uint32_t{1} << 31;
  const std::uint32_t taken = cursor.fetch_add(1, std::memory_order_relaxed);
  if (taken == kHigh) cursor.fetch_sub((kHigh / capacity - 1) * capacity);
  return taken % capacity;
}

// Records at this index and above have never been used.
inline std::uint32_t used_records(const std::atomic<std::uint32_t>& cursor,
                                  std::uint32_t capacity) {
  return std::min(cursor.load(std::memory_order_relaxed), capacity);
}

}  // namespace cairn
