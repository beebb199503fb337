// SPDX-License-Identifier: Apache-2.0
// A fixed-size hash table in shared memory whose readers never lock: cache lines of seven slots.
//
// A slot is  | tag : 32 | value : 32 |, 0 when empty.
//
// The tag filters; the caller's predicate decides whether the value
// is the one looked for, because only the record behind it knows the whole key. A full line counts
// how many keys went past it (`overflow`), so a search stops at the first line that nobody passed.
//
// Invariants
//  1. A slot changes by one atomic store or compare-and-swap: a reader and a death see it before or
//     after.
//  2. Keys with one home line are inserted and erased under that line's lock, so a key is present
//     at most once.
//  3. `overflow` is never too small. A death may leave it too large, which costs a probe and
//     nothing else.
//  4. A key keeps its slot from its insertion to its erasure, whatever its value becomes. The
//     record behind the old value may deny the key only after replace_locked() has counted in
//     `arrivals` of the home line: a search that found nothing looks there, and knows whether it
//     came too late to the old record. So find() says kNotFound only of a key that was absent at
//     some moment of it.
//  5. An insertion counts in `arrivals` before its caller does anything with the record. So a key
//     that a search does not find, before and after something else, was absent all the while if
//     arrivals() is the same.
//
// Nothing grows: when all of kProbesMax lines are full, insert() says so and the caller goes
// without.
//
// Thread safety: find() from any thread without a lock; insert() and erase() lock the home line.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/owned_lock.h"

namespace cairn {

struct HashLine {
  static constexpr unsigned kSlots = 7;
  OwnedLock lock;
  // keys that went past this line: at most 7 for each of the lines before it that may send some
  std::atomic<std::uint16_t> overflow{0};
  // how often a key whose home is here got a value: its first or another
  std::atomic<std::uint16_t> arrivals{0};
  std::atomic<std::uint64_t> slots[kSlots];
};
static_assert(sizeof(HashLine) == 64, "a probe touches one cache line");

// Where a key lives: equal keys have equal positions.
struct HashPosition {
  std::uint64_t home;
  std::uint32_t tag;
  // Where in the home line the key goes if that slot is free: a reader looks there first, without
  // a search and without a branch that cannot be foreseen.
  unsigned slot = 0;
};

constexpr std::uint64_t mix_bits(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  value ^= value >> 32;
  value *= 0xd6e8feb86659fd93ULL;
  value ^= value >> 32;
  return value;
}

class HashLines {
 public:
  static constexpr std::uint32_t kNotFound = 0;
  static constexpr unsigned kProbesMax = 32;

  HashLines() = default;
  // Requires: `line_count` is a power of two, the memory is zeroed at first use.
  HashLines(HashLine* lines, std::uint64_t line_count) : lines_(lines), mask_(line_count - 1) {}

  // Whatever value stands where the key would be put first: the key's own most of the time, another
  // key's or kNotFound otherwise. The caller compares.
  std::uint32_t guess(HashPosition position) const {
    const HashLine& line = lines_[position.home & mask_];
    return static_cast<std::uint32_t>(line.slots[position.slot].load(std::memory_order_acquire));
  }

  // The same if the key is there, else kNotFound, which proves nothing.
  std::uint32_t guess_by_tag(HashPosition position) const {
    const HashLine& line = lines_[position.home & mask_];
    const std::uint64_t seen = line.slots[position.slot].load(std::memory_order_acquire);
    return seen >> 32 == position.tag ? static_cast<std::uint32_t>(seen) : kNotFound;
  }

  // Returns the value whose record `matches`, or kNotFound. Requires: `matches` reads the record
  // with acquire, and who takes the key out of a record stores that with release.
  template <typename Matches>
  std::uint32_t find(HashPosition position, Matches&& matches) const {
    for (;;) {
      const std::uint16_t before = arrivals(position);
      const std::uint32_t value = find_once(position, matches);
      if (value != kNotFound || arrivals(position) == before) return value;
    }
  }

  std::uint16_t arrivals(HashPosition position) const {
    return lines_[position.home & mask_].arrivals.load(std::memory_order_acquire);
  }

  // Calls visit(slot) for every slot, free ones as well.
  template <typename Visit>
  void for_each_slot(Visit&& visit) const {
    for (std::uint64_t index = 0; index <= mask_; ++index) {
      for (const auto& slot : lines_[index].slots) visit(slot);
    }
  }
  // Calls visit(HashLine&) for every line but those of pages of which is_used(address) says that
  // nobody has written there yet: a look would allocate them.
  template <typename IsUsed, typename Visit>
  void for_each_used_line(IsUsed&& is_used, Visit&& visit) const {
    constexpr std::uint64_t kLinesInPage = kPageBytes / sizeof(HashLine);
    for (std::uint64_t index = 0; index <= mask_; ++index) {
      if (index % kLinesInPage == 0 && !is_used(&lines_[index])) {
        index += kLinesInPage - 1;
        continue;
      }
      visit(lines_[index]);
    }
  }

  // The lock that serialises inserting and erasing keys of this position.
  OwnedLock& lock_of(HashPosition position) const { return lines_[position.home & mask_].lock; }

  // Requires: lock_of(position) is held, the key is absent, value != 0. Returns false when the
  // table is full here.
  bool insert_locked(HashPosition position, std::uint32_t value) {
    const std::uint64_t wanted = static_cast<std::uint64_t>(position.tag) << 32 | value;
    std::uint64_t index = position.home & mask_;
    for (unsigned probe = 0; probe < kProbesMax; ++probe) {
      HashLine& line = lines_[index];
      for (unsigned turn = 0; turn < HashLine::kSlots; ++turn) {
        auto& slot = line.slots[(position.slot + turn) % HashLine::kSlots];
        std::uint64_t empty = 0;
        if (slot.load(std::memory_order_relaxed) == 0 &&
            slot.compare_exchange_strong(empty, wanted, std::memory_order_release)) {
          count_arrival(position);
          return true;
        }
      }
      line.overflow.fetch_add(1, std::memory_order_acq_rel);
      index = (index + 1) & mask_;
    }
    undo_overflow(position, kProbesMax);
    return false;
  }

  // Requires: lock_of(position) is held. Returns false when the pair was not there.
  bool erase_locked(HashPosition position, std::uint32_t value) {
    const std::uint64_t wanted = static_cast<std::uint64_t>(position.tag) << 32 | value;
    std::uint64_t index = position.home & mask_;
    for (unsigned probe = 0; probe < kProbesMax; ++probe) {
      HashLine& line = lines_[index];
      for (auto& slot : line.slots) {
        if (slot.load(std::memory_order_relaxed) != wanted) continue;
        slot.store(0, std::memory_order_release);
        undo_overflow(position, probe);
        return true;
      }
      index = (index + 1) & mask_;
    }
    return false;
  }

  // Requires: lock_of(position) is held and `from` is there, whose record names the key until this
  // returns, as that of `to` does already. Swaps the value in one store (a block changes its
  // bucket).
  bool replace_locked(HashPosition position, std::uint32_t from, std::uint32_t to) {
    const std::uint64_t tag = static_cast<std::uint64_t>(position.tag) << 32;
    std::uint64_t index = position.home & mask_;
    for (unsigned probe = 0; probe < kProbesMax; ++probe) {
      for (auto& slot : lines_[index].slots) {
        if (slot.load(std::memory_order_relaxed) != (tag | from)) continue;
        slot.store(tag | to, std::memory_order_release);
        count_arrival(position);
        return true;
      }
      index = (index + 1) & mask_;
    }
    return false;
  }

  // To be called for a key, too, whose inserter or mover may have died before it counted.
  void count_arrival(HashPosition position) const {
    lines_[position.home & mask_].arrivals.fetch_add(1, std::memory_order_release);
  }

  std::uint64_t line_count() const { return mask_ + 1; }

 private:
  template <typename Matches>
  std::uint32_t find_once(HashPosition position, Matches& matches) const {
    std::uint64_t index = position.home & mask_;
    for (unsigned probe = 0; probe < kProbesMax; ++probe) {
      const HashLine& line = lines_[index];
      for (const auto& slot : line.slots) {
        const std::uint64_t seen = slot.load(std::memory_order_acquire);
        if (static_cast<std::uint32_t>(seen >> 32) != position.tag || seen == 0) continue;
        const auto value = static_cast<std::uint32_t>(seen);
        if (matches(value)) return value;
      }
      if (line.overflow.load(std::memory_order_acquire) == 0) return kNotFound;
      index = (index + 1) & mask_;
    }
    return kNotFound;
  }

  void undo_overflow(HashPosition position, unsigned lines_passed) {
    std::uint64_t index = position.home & mask_;
    for (unsigned probe = 0; probe < lines_passed; ++probe) {
      std::atomic<std::uint16_t>& overflow = lines_[index].overflow;
      std::uint16_t seen = overflow.load(std::memory_order_relaxed);
      while (seen != 0 &&
             !overflow.compare_exchange_weak(seen, static_cast<std::uint16_t>(seen - 1))) {
      }
      index = (index + 1) & mask_;
    }
  }

  HashLine* lines_ = nullptr;
  std::uint64_t mask_ = 0;
};

}  // namespace cairn
