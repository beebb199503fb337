// SPDX-License-Identifier: Apache-2.0
// Experts that look at one order of the pages only.
//   lru   the page used longest ago leaves
//   mru   the page used last leaves: right for a loop that is larger than the cache
//   fifo  the page that came first leaves, used or not
//
// Thread safety: none.
#pragma once

#include "policy/replacement/page_lists.h"

namespace cairn {

class RecencyExpert final : public Expert {
 public:
  enum class Order : std::uint8_t { kLru, kMru, kFifo };
  RecencyExpert(Order order, std::uint32_t capacity) : Expert(capacity), order_(order) {}

  const char* name() const override;
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return pages_.is_on_any(page); }
  void forget(PageId page) override;

 private:
  const Order order_;
  PageLists pages_{1};
};

}  // namespace cairn
