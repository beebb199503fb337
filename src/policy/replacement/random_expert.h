// SPDX-License-Identifier: Apache-2.0
// Any page leaves, each as likely as the others: no order of references is its worst case.
//
// Thread safety: none. Two experts of one seed agree.
#pragma once

#include "base/random_source.h"
#include "policy/replacement/page_pool.h"

namespace cairn {

class RandomExpert final : public Expert {
 public:
  explicit RandomExpert(std::uint32_t capacity, std::uint64_t seed = 1)
      : Expert(capacity), random_(seed) {}

  const char* name() const override { return "random"; }
  bool reference(PageId page) override {
    evicted_.clear();
    if (holds(page)) return true;
    if (pages_.size() == capacity()) {
      evicted_.push_back(pages_.at(random_.below(pages_.size())));
      pages_.remove(evicted_.back());
    }
    pages_.add(page);
    return false;
  }
  bool holds(PageId page) const override { return pages_.holds(page); }
  void forget(PageId page) override {
    if (holds(page)) pages_.remove(page);
  }

 private:
  PagePool pages_;
  RandomSource random_;
};

}  // namespace cairn
