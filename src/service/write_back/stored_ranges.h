// SPDX-License-Identifier: Apache-2.0
// Which bytes of a file the service has stored since they were last known to be durable: only those
// can be lost when the store fails.
//
// Thread safety: StoredRanges none; RecordedRanges any thread. Ownership: values.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

class StoredRanges {
 public:
  // More would cost more than to count what lies between them too.
  static constexpr std::size_t kRangesMax = 1024;

  // All of a file, of which nobody knows what its last service has stored.
  static StoredRanges everything();
  void add(std::uint64_t begin, std::uint64_t end);
  void add(const StoredRanges& more);
  // What `stored` has is not among these any more, if that is known exactly.
  void subtract(const StoredRanges& stored);
  bool is_empty() const { return ranges_.empty(); }
  bool is_exact() const { return is_exact_; }

  // How much of these bytes the tiers have.
  enum class Residency : std::uint8_t { kNone, kSome, kAll };
  Residency in_tiers(const NodeMemory& memory, ObjectIndex object) const;

  friend bool operator==(const StoredRanges&, const StoredRanges&) = default;

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // from begin to end, with a gap between any two
  bool is_exact_ = true;
};

class RecordedRanges {
 public:
  void add(std::uint64_t begin, std::uint64_t end) {
    const std::lock_guard lock(mutex_);
    ranges_.add(begin, end);
  }
  void add(const StoredRanges& more) {
    const std::lock_guard lock(mutex_);
    ranges_.add(more);
  }
  StoredRanges take();
  StoredRanges get() const {
    const std::lock_guard lock(mutex_);
    return ranges_;
  }

 private:
  mutable std::mutex mutex_;
  StoredRanges ranges_;
};

}  // namespace cairn::node
