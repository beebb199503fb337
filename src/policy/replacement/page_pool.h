// SPDX-License-Identifier: Apache-2.0
// A set of pages from which one can be drawn at random.
//
// Thread safety: none. Ownership: four bytes for every page number up to the highest, and four for
// every page in it.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/expert.h"

namespace cairn {

class PagePool {
 public:
  bool holds(PageId page) const { return at_page_or(place_of_, page, kNowhere) != kNowhere; }
  std::uint32_t size() const { return static_cast<std::uint32_t>(pages_.size()); }
  // Requires: at < size().
  PageId at(std::uint32_t at) const { return pages_[at]; }
  // Requires: it is not there.
  void add(PageId page) {
    if (raw(page) >= place_of_.size()) place_of_.resize(raw(page) + raw(page) / 2 + 16, kNowhere);
    place_of_[raw(page)] = size();
    pages_.push_back(page);
  }
  // Requires: it is there.
  void remove(PageId page) {
    const std::uint32_t place = place_of_[raw(page)];
    const PageId last = pages_.back();
    pages_[place] = last;
    place_of_[raw(last)] = place;
    place_of_[raw(page)] = kNowhere;
    pages_.pop_back();
  }

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  std::vector<PageId> pages_;
  std::vector<std::uint32_t> place_of_;
};

}  // namespace cairn
