// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/page_lists.h"

#include "base/check.h"

namespace cairn {

PageLists::PageLists(unsigned lists) : sizes_(lists, 0) {
  CAIRN_CHECK(lists < kNoList);
  for (unsigned list = 0; list < lists; ++list) links_.push_back(Link{list, list});
}

void PageLists::insert_behind(unsigned list, PageId page, std::uint32_t place) {
  if (raw(page) >= list_of_.size()) {
    list_of_.resize(raw(page) + raw(page) / 2 + 16, kNoList);
    links_.resize(list_of_.size() + lists());
  }
  CAIRN_DCHECK(list < lists() && !is_on_any(page));
  const std::uint32_t own = place_of(page);
  const std::uint32_t next = links_[place].next;
  links_[own] = Link{next, place};
  links_[place].next = own;
  links_[next].previous = own;
  list_of_[raw(page)] = static_cast<std::uint8_t>(list);
  ++sizes_[list];
}

void PageLists::push_front(unsigned list, PageId page) { insert_behind(list, page, list); }

void PageLists::push_back(unsigned list, PageId page) {
  insert_behind(list, page, links_[list].previous);
}

void PageLists::remove(PageId page) {
  CAIRN_DCHECK(is_on_any(page));
  const Link link = links_[place_of(page)];
  CAIRN_DCHECK(links_[link.previous].next == place_of(page));
  CAIRN_DCHECK(links_[link.next].previous == place_of(page));
  links_[link.previous].next = link.next;
  links_[link.next].previous = link.previous;
  std::uint8_t& list = list_of_[raw(page)];
  --sizes_[list];
  list = kNoList;
}

}  // namespace cairn
