// SPDX-License-Identifier: Apache-2.0
// A known piece of the future of one file: which of its blocks will be used, and in which order,
// such as a shuffle with a known seed. It says of any block how far away its next use is, which is
// all that an evictor needs: of the resident blocks the one that is wanted last leaves (Belady: "A
// study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 5(2), 1966).
//
// Unlike the expert of that rule (policy/replacement/farthest_future.h) it holds no directory of
// its own, and its clock is the place in the order that has been reached, not the references that
// came: it learns later of uses that were not reported.
//
// Bounds: at most `uses_max` uses are known at once. Thread safety: none. Ownership: eight bytes
// for each use, and 16 to 24 for each of the blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace cairn {

class KnownFuture {
 public:
  static constexpr std::uint32_t kNever = UINT32_MAX;

  // Requires: uses_max > 0.
  explicit KnownFuture(std::size_t uses_max) : uses_max_(uses_max) {}

  // The use behind all that are known. Requires: is_full() is false.
  void expect(std::uint32_t block);
  bool is_full() const { return uses_.size() >= uses_max_ || end() == kNever; }
  // How many uses are known ahead.
  std::size_t size() const { return uses_.size(); }
  // Never less than what is known already is kept.
  void set_uses_max(std::size_t uses_max) { uses_max_ = uses_max; }

  // Uses between now and the block's next one; 0: it is the very next. kNever: none is known.
  std::uint32_t until_use(std::uint32_t block) const;
  // So many of the next uses are past; at most all that are known.
  void pass(std::uint32_t uses);
  // The block of the use after so many. Requires: `after` < size().
  std::uint32_t block_after(std::uint32_t after) const { return uses_[after].block; }

 private:
  struct Use {
    std::uint32_t block;
    std::uint32_t again;  // number of the block's use behind this one; kNever
  };
  // A block with a known use, and the numbers of its first and its last one. Linear probing; an
  // element that is taken out is filled from behind (Knuth, TAOCP 3, 6.4, algorithm R).
  struct Slot {
    std::uint32_t block = 0;
    std::uint32_t first = kNever;  // kNever: the slot is free
    std::uint32_t last = kNever;
  };
  std::uint32_t end() const { return now_ + static_cast<std::uint32_t>(uses_.size()); }
  std::size_t home_of(std::uint32_t block) const;
  std::size_t next(std::size_t slot) const { return slot + 1 == slots_.size() ? 0 : slot + 1; }
  // The block's slot, or the free one where it would stand. Requires: slots_ is not empty.
  std::size_t find(std::uint32_t block) const;
  void take_out(std::size_t slot);
  void grow();

  std::size_t uses_max_;
  std::uint32_t now_ = 0;  // number of the next use
  std::deque<Use> uses_;
  std::vector<Slot> slots_;
  std::size_t blocks_ = 0;  // slots in use
};

}  // namespace cairn
