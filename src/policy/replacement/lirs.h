// SPDX-License-Identifier: Apache-2.0
// lirs: ranks pages by the distance between their last two uses, counted in other pages. Pages of
// low distance have nearly all of the cache, the others pass through a short queue (Jiang, Zhang:
// "LIRS: an efficient low inter-reference recency set replacement policy", SIGMETRICS 2002).
//
// The stack holds the pages of low distance, and others in order of their last use down to the
// oldest of low distance. It remembers twice the capacity of pages that left.
//
// Thread safety: none.
#pragma once

#include <deque>

#include "policy/replacement/page_lists.h"

namespace cairn {

class Lirs final : public Expert {
 public:
  explicit Lirs(std::uint32_t capacity);

  const char* name() const override { return "lirs"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override {
    const Kind kind = kind_of(page);
    return kind == Kind::kLow || kind == Kind::kHigh;
  }
  bool remembers(PageId page) const override { return kind_of(page) != Kind::kUnknown; }
  void forget(PageId page) override;

 private:
  enum class Kind : std::uint8_t { kUnknown, kLow, kHigh, kGone };
  struct Departure {
    PageId page;
    std::uint64_t number;
  };
  static constexpr double kHighShare = 0.01;
  static constexpr std::uint32_t kGoneShare = 2;

  Kind kind_of(PageId page) const { return at_page_or(kinds_, page, Kind::kUnknown); }
  void reference_low(PageId page);
  void reference_high(PageId page);
  void take_in(PageId page);
  void make_low(PageId page);
  void demote_oldest_low();
  void evict();
  void prune();
  void forget_departures();

  std::uint32_t low_capacity_;
  std::uint32_t low_count_ = 0;
  std::uint32_t gone_count_ = 0;
  PageLists stack_{1};
  PageLists queue_{1};  // of high distance, the next to leave at the front
  std::vector<Kind> kinds_;
  std::vector<std::uint64_t> departures_of_;  // the number of its last one
  std::deque<Departure> departures_;
  std::uint64_t departed_ = 0;
};

}  // namespace cairn
