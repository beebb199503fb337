// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/lirs.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {

Lirs::Lirs(std::uint32_t capacity) : Expert(capacity) {
  std::uint32_t high = std::max(2U, static_cast<std::uint32_t>(capacity * kHighShare));
  if (high >= capacity) high = std::max(1U, capacity / 2);
  low_capacity_ = capacity - std::min(high, capacity);
  CAIRN_CHECK(low_capacity_ < capacity);  // a page that is new has a place
}

bool Lirs::reference(PageId page) {
  evicted_.clear();
  switch (kind_of(page)) {
    case Kind::kLow:
      reference_low(page);
      return true;
    case Kind::kHigh:
      reference_high(page);
      return true;
    default:
      take_in(page);
      return false;
  }
}

void Lirs::reference_low(PageId page) {
  const bool was_oldest = stack_.back(0) == page;
  stack_.remove(page);
  stack_.push_front(0, page);
  if (was_oldest) prune();
}

void Lirs::reference_high(PageId page) {
  queue_.remove(page);
  if (stack_.is_on_any(page)) {
    // Used again before the oldest page of low distance was.
    stack_.remove(page);
    stack_.push_front(0, page);
    make_low(page);
    return;
  }
  stack_.push_front(0, page);
  queue_.push_back(0, page);
}

void Lirs::take_in(PageId page) {
  if (low_count_ + queue_.size(0) >= capacity()) evict();
  CAIRN_DCHECK(low_count_ + queue_.size(0) < capacity());
  // The page that has just left may have pushed this one out of memory.
  if (kind_of(page) == Kind::kGone) {
    --gone_count_;
    stack_.remove(page);
    stack_.push_front(0, page);
    make_low(page);
    return;
  }
  stack_.push_front(0, page);
  if (low_count_ < low_capacity_ && queue_.size(0) == 0) {
    at_page(kinds_, page) = Kind::kLow;
    ++low_count_;
    return;
  }
  at_page(kinds_, page) = Kind::kHigh;
  queue_.push_back(0, page);
}

void Lirs::make_low(PageId page) {
  at_page(kinds_, page) = Kind::kLow;
  ++low_count_;
  if (low_count_ > low_capacity_) demote_oldest_low();
}

void Lirs::demote_oldest_low() {
  // A cache so small that no page had to be of low distance may have others there.
  prune();
  const PageId page = stack_.back(0);
  CAIRN_DCHECK(page != kNoPage && kind_of(page) == Kind::kLow);
  stack_.remove(page);
  kinds_[raw(page)] = Kind::kHigh;
  --low_count_;
  queue_.push_back(0, page);
  prune();
}

void Lirs::evict() {
  if (queue_.size(0) == 0) demote_oldest_low();
  const PageId page = queue_.front(0);
  CAIRN_DCHECK(page != kNoPage && kind_of(page) == Kind::kHigh);
  queue_.remove(page);
  evicted_.push_back(page);
  if (!stack_.is_on_any(page)) {
    kinds_[raw(page)] = Kind::kUnknown;
    return;
  }
  kinds_[raw(page)] = Kind::kGone;
  ++gone_count_;
  at_page(departures_of_, page) = ++departed_;
  departures_.push_back({page, departed_});
  forget_departures();
}

// The oldest in the stack is always one of low distance.
void Lirs::prune() {
  for (;;) {
    const PageId page = stack_.back(0);
    if (page == kNoPage || kind_of(page) == Kind::kLow) return;
    stack_.remove(page);
    if (kind_of(page) != Kind::kGone) continue;
    kinds_[raw(page)] = Kind::kUnknown;
    --gone_count_;
  }
}

void Lirs::forget_departures() {
  const std::uint32_t gone_max = kGoneShare * capacity();
  const auto is_current = [this](const Departure& departure) {
    return kind_of(departure.page) == Kind::kGone &&
           departures_of_[raw(departure.page)] == departure.number;
  };
  while (gone_count_ > gone_max && !departures_.empty()) {
    const Departure oldest = departures_.front();
    departures_.pop_front();
    if (!is_current(oldest)) continue;
    stack_.remove(oldest.page);
    kinds_[raw(oldest.page)] = Kind::kUnknown;
    --gone_count_;
  }
  if (departures_.size() > 4 * std::size_t{gone_max} + 64)
    std::erase_if(departures_, [&](const Departure& one) { return !is_current(one); });
}

void Lirs::forget(PageId page) {
  const Kind kind = kind_of(page);
  if (kind == Kind::kUnknown) return;
  if (stack_.is_on_any(page)) stack_.remove(page);
  if (kind == Kind::kHigh) queue_.remove(page);
  if (kind == Kind::kLow) --low_count_;
  if (kind == Kind::kGone) --gone_count_;
  kinds_[raw(page)] = Kind::kUnknown;
  prune();
}

}  // namespace cairn
