// SPDX-License-Identifier: Apache-2.0
//
// Published policies of replacement that Cairn's experts are measured against and that it does not
// have: ARC (Megiddo, Modha, FAST 2003), SIEVE (Zhang and others, NSDI 2024), 2Q (Johnson, Shasha,
// VLDB 1994), and LFU whose counts are halved every ten capacities of references.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include "policy/replacement/page_lists.h"

namespace replacement_peers {

using cairn::Expert;
using cairn::kNoPage;
using cairn::PageId;
using cairn::PageLists;

// A peer is measured only: no page is ever taken from it.
class Peer : public Expert {
 public:
  using Expert::Expert;
  void forget(PageId) override {}
};

class Sieve final : public Peer {
 public:
  using Peer::Peer;
  const char* name() const override { return "sieve"; }
  bool holds(PageId page) const override { return pages_.is_on_any(page); }
  bool reference(PageId page) override {
    evicted_.clear();
    cairn::at_page(is_used_, page);
    if (holds(page)) {
      is_used_[raw(page)] = 1;
      return true;
    }
    if (pages_.size(0) == capacity()) evict();
    is_used_[raw(page)] = 0;
    pages_.push_front(0, page);
    return false;
  }

 private:
  void evict() {
    PageId page = hand_ == kNoPage ? pages_.back(0) : hand_;
    while (is_used_[raw(page)] != 0) {
      is_used_[raw(page)] = 0;
      page = pages_.nearer_front(page);
      if (page == kNoPage) page = pages_.back(0);
    }
    hand_ = pages_.nearer_front(page);
    pages_.remove(page);
    evicted_.push_back(page);
  }

  PageLists pages_{1};
  std::vector<std::uint8_t> is_used_;
  PageId hand_ = kNoPage;
};

class TwoQueues final : public Peer {
 public:
  explicit TwoQueues(std::uint32_t capacity)
      : Peer(capacity), in_(std::max(1U, capacity / 4)), out_(std::max(1U, capacity / 2)) {}
  const char* name() const override { return "2q"; }
  bool holds(PageId page) const override {
    return lists_.is_on(kIn, page) || lists_.is_on(kMain, page);
  }
  bool reference(PageId page) override {
    evicted_.clear();
    if (lists_.is_on(kMain, page)) {
      lists_.remove(page);
      lists_.push_front(kMain, page);
      return true;
    }
    if (lists_.is_on(kIn, page)) return true;
    const bool came_back = lists_.is_on(kOut, page);
    if (came_back) lists_.remove(page);
    if (lists_.size(kIn) + lists_.size(kMain) == capacity()) evict();
    lists_.push_front(came_back ? kMain : kIn, page);
    return false;
  }

 private:
  static constexpr unsigned kIn = 0;
  static constexpr unsigned kMain = 1;
  static constexpr unsigned kOut = 2;
  void evict() {
    const bool from_in = lists_.size(kIn) > in_ || lists_.size(kMain) == 0;
    const PageId page = lists_.back(from_in ? kIn : kMain);
    lists_.remove(page);
    evicted_.push_back(page);
    if (!from_in) return;
    lists_.push_front(kOut, page);
    if (lists_.size(kOut) > out_) lists_.remove(lists_.back(kOut));
  }

  const std::uint32_t in_;
  const std::uint32_t out_;
  PageLists lists_{3};
};

class Arc final : public Peer {
 public:
  using Peer::Peer;
  const char* name() const override { return "arc"; }
  bool holds(PageId page) const override {
    return lists_.is_on(kOnce, page) || lists_.is_on(kOften, page);
  }
  bool reference(PageId page) override {
    evicted_.clear();
    const bool is_hit = holds(page);
    const bool was_once = lists_.is_on(kOnceGone, page);
    const bool was_often = lists_.is_on(kOftenGone, page);
    if (!is_hit) make_room(was_once, was_often);
    if (is_hit || was_once || was_often) {
      lists_.remove(page);
      lists_.push_front(kOften, page);
    } else {
      lists_.push_front(kOnce, page);
    }
    return is_hit;
  }

 private:
  static constexpr unsigned kOnce = 0;
  static constexpr unsigned kOften = 1;
  static constexpr unsigned kOnceGone = 2;
  static constexpr unsigned kOftenGone = 3;

  void make_room(bool was_once, bool was_often) {
    const double once_gone = lists_.size(kOnceGone);
    const double often_gone = lists_.size(kOftenGone);
    const std::uint32_t once_seen = lists_.size(kOnce) + lists_.size(kOnceGone);
    if (was_once) {
      target_ = std::min<double>(capacity(), target_ + std::max(1.0, often_gone / once_gone));
    } else if (was_often) {
      target_ = std::max(0.0, target_ - std::max(1.0, once_gone / often_gone));
    } else if (once_seen == capacity() && lists_.size(kOnceGone) == 0) {
      drop(lists_.back(kOnce), kNobody);
      return;
    } else if (once_seen == capacity()) {
      lists_.remove(lists_.back(kOnceGone));
    } else if (once_seen + lists_.size(kOften) + lists_.size(kOftenGone) >= 2 * capacity()) {
      lists_.remove(lists_.back(kOftenGone));
    }
    if (lists_.size(kOnce) + lists_.size(kOften) == capacity()) replace(was_often);
  }
  void replace(bool was_often) {
    const std::uint32_t once = lists_.size(kOnce);
    const bool from_once =
        once != 0 && (once > target_ || (was_often && once == static_cast<std::uint32_t>(target_)));
    if (from_once || lists_.size(kOften) == 0) {
      drop(lists_.back(kOnce), kOnceGone);
    } else {
      drop(lists_.back(kOften), kOftenGone);
    }
  }
  static constexpr unsigned kNobody = 4;
  void drop(PageId page, unsigned remembered_by) {
    lists_.remove(page);
    if (remembered_by != kNobody) lists_.push_front(remembered_by, page);
    evicted_.push_back(page);
  }

  PageLists lists_{4};
  double target_ = 0;
};

class AgedFrequency final : public Peer {
 public:
  using Peer::Peer;
  const char* name() const override { return "lfu-aged"; }
  bool holds(PageId page) const override {
    return cairn::at_page_or(uses_, page, Use{}).count != 0;
  }
  bool reference(PageId page) override {
    evicted_.clear();
    if (++references_ % (10 * std::uint64_t{capacity()}) == 0) halve();
    const bool is_hit = holds(page);
    Use& use = cairn::at_page(uses_, page);
    if (is_hit) {
      order_.erase({use.count, use.last, page});
    } else if (order_.size() == capacity()) {
      const PageId victim = std::get<PageId>(*order_.begin());
      order_.erase(order_.begin());
      uses_[raw(victim)] = Use{};
      evicted_.push_back(victim);
    }
    use = Use{use.count + 1, references_};
    order_.insert({use.count, use.last, page});
    return is_hit;
  }

 private:
  struct Use {
    std::uint32_t count = 0;
    std::uint64_t last = 0;
  };
  using Rank = std::tuple<std::uint32_t, std::uint64_t, PageId>;
  void halve() {
    std::set<Rank> halved;
    for (const auto& [count, last, page] : order_) {
      uses_[raw(page)].count = std::max(1U, count / 2);
      halved.insert({uses_[raw(page)].count, last, page});
    }
    order_ = std::move(halved);
  }

  std::vector<Use> uses_;
  std::set<Rank> order_;
  std::uint64_t references_ = 0;
};

}  // namespace replacement_peers
