// SPDX-License-Identifier: Apache-2.0
// Exact LRU stack distances of a stream of pages: how many distinct pages were used since the last
// use of the page, itself included. A reference of distance d hits every LRU cache of d pages or
// more, and no smaller one (Mattson, Gecsei, Slutz, Traiger: "Evaluation techniques for storage
// hierarchies", IBM Systems Journal 9(2), 1970). It counts by a tree over the times of last uses
// (Bennett, Kruskal: "LRU stack processing", IBM Journal of R&D 19(4), 1975; Olken's tree of 1981
// does the same), here a Fenwick tree. When the time line is full, the last uses get new numbers
// without gaps.
//
//   StackDistances distances;
//   distances.reference(7);  // kCold
//   distances.reference(8);  // kCold
//   distances.reference(7);  // 2
//
// Cost: O(log pages) a reference, on average. Bounds: at most 2^28 pages at once.
// Thread safety: none. Ownership: 23 to 45 bytes for each page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "policy/miss_ratios/marked_times.h"
#include "policy/miss_ratios/page_table.h"

namespace cairn {

class StackDistances {
 public:
  // The distance of the first reference to a page.
  static constexpr std::uint64_t kCold = UINT64_MAX;

  StackDistances();

  // Returns: the distance, from 1 on, or kCold.
  std::uint64_t reference(std::uint64_t key);
  // The page counts in no distance any more, and its next reference is its first.
  void forget(std::uint64_t key);

  // How many pages it knows.
  std::size_t size() const { return pages_.size(); }
  // The number of references to each page, in no order.
  std::vector<std::uint32_t> all_uses() const { return pages_.all_uses(); }
  std::size_t memory_bytes() const { return pages_.memory_bytes() + times_.memory_bytes(); }

 private:
  void renumber();

  PageTable pages_;    // the value is the time of the last use
  MarkedTimes times_;  // those of the last uses of all pages
  std::uint32_t now_ = 0;
};

}  // namespace cairn
