// SPDX-License-Identifier: Apache-2.0
// lfu: the page used least often since it came leaves; among equals the one used longest ago.
//
// Thread safety: none.
#pragma once

#include <set>
#include <tuple>

#include "policy/replacement/expert.h"

namespace cairn {

class FrequencyExpert final : public Expert {
 public:
  explicit FrequencyExpert(std::uint32_t capacity) : Expert(capacity) {}

  const char* name() const override { return "lfu"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return at_page_or(uses_, page, Use{}).count != 0; }
  void forget(PageId page) override;

 private:
  struct Use {
    std::uint32_t count = 0;  // 0: not held
    std::uint64_t last = 0;
  };
  using Rank = std::tuple<std::uint32_t, std::uint64_t, PageId>;
  static Rank rank(PageId page, const Use& use) { return {use.count, use.last, page}; }

  std::vector<Use> uses_;
  std::set<Rank> order_;
  std::uint64_t now_ = 0;
};

}  // namespace cairn
