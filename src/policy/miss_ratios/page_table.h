// SPDX-License-Identifier: Apache-2.0
// A hash table of page keys. Each page has one 32-bit value of the owner's choice, and the number
// of its uses. Linear probing; a page that is erased is filled from behind (Knuth, TAOCP 3, 6.4,
// algorithm R).
//
// Thread safety: none. Ownership: 21 to 43 bytes for each page; the table grows and never shrinks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cairn {

class PageTable {
 public:
  struct Page {
    std::uint64_t key = 0;
    std::uint32_t value = 0;
    std::uint32_t uses = 0;  // stops at its highest value; 0: the slot is free
  };

  PageTable();

  // Counts a use of the page, which enters with value 0 if it is new.
  // Returns: the page, valid until the next use() or erase(). Its `uses` is 1 if it is new.
  Page& use(std::uint64_t key);
  // Null when the table has no such page.
  const Page* find(std::uint64_t key) const;
  // Returns: the page as it was, with 0 uses if the table has none.
  Page erase(std::uint64_t key);

  std::size_t size() const { return pages_; }
  std::size_t memory_bytes() const { return slots_.capacity() * sizeof(Page); }
  // visit(page), in no order. It may change the value alone.
  template <typename Visit>
  void for_each(Visit&& visit) {
    for (Page& page : slots_) {
      if (page.uses != 0) visit(page);
    }
  }
  // The numbers of uses of all pages, in no order.
  std::vector<std::uint32_t> all_uses() const;

 private:
  static constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ULL;

  // Fibonacci hashing (Knuth, TAOCP 3, 6.4), with the high half of the key folded in.
  std::size_t home_of(std::uint64_t key) const {
    return static_cast<std::size_t>((key ^ key >> 32) * kGoldenRatio >> shift_);
  }
  std::size_t next(std::size_t slot) const { return (slot + 1) & (slots_.size() - 1); }
  // The slot of the page, or the free one where it would stand.
  std::size_t slot_for(std::uint64_t key) const;
  void grow();

  std::vector<Page> slots_;  // a power of two of them, at most three quarters of them in use
  unsigned shift_;           // 64 less the bits of a slot's number
  std::size_t pages_ = 0;
};

}  // namespace cairn
