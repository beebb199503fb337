// SPDX-License-Identifier: Apache-2.0
// Doubly linked lists of pages; a page is on one of them at most.
//
// Thread safety: none. Ownership: nine bytes for every page number up to the highest.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/replacement/expert.h"

namespace cairn {

class PageLists {
 public:
  explicit PageLists(unsigned lists);

  void push_front(unsigned list, PageId page);
  void push_back(unsigned list, PageId page);
  // Requires: it is on a list.
  void remove(PageId page);

  bool is_on_any(PageId page) const { return at_page_or(list_of_, page, kNoList) != kNoList; }
  bool is_on(unsigned list, PageId page) const {
    return at_page_or(list_of_, page, kNoList) == static_cast<std::uint8_t>(list);
  }
  std::uint32_t size(unsigned list) const { return sizes_[list]; }
  // kNoPage when the list is empty.
  PageId front(unsigned list) const { return page_at(links_[list].next); }
  PageId back(unsigned list) const { return page_at(links_[list].previous); }
  // The page's neighbour on the side of the list's front; kNoPage for the front itself.
  PageId nearer_front(PageId page) const { return page_at(links_[place_of(page)].previous); }

 private:
  // A list is a ring through its own link, which stands before those of all pages.
  struct Link {
    std::uint32_t next;
    std::uint32_t previous;
  };
  static constexpr std::uint8_t kNoList = UINT8_MAX;

  std::uint32_t place_of(PageId page) const { return raw(page) + lists(); }
  PageId page_at(std::uint32_t place) const {
    return place < lists() ? kNoPage : static_cast<PageId>(place - lists());
  }
  std::uint32_t lists() const { return static_cast<std::uint32_t>(sizes_.size()); }
  void insert_behind(unsigned list, PageId page, std::uint32_t place);

  std::vector<Link> links_;
  std::vector<std::uint8_t> list_of_;
  std::vector<std::uint32_t> sizes_;
};

}  // namespace cairn
