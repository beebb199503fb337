// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/farthest_future.h"

namespace cairn {

void FarthestFuture::enter(PageId page) {
  State& state = states_[raw(page)];
  state.is_held = true;
  held_.insert({rank(state), page});
}

void FarthestFuture::leave(PageId page) {
  State& state = states_[raw(page)];
  held_.erase({rank(state), page});
  state.is_held = false;
}

void FarthestFuture::expect(PageId page) {
  const std::uint64_t number = now_ + future_.size();
  State& state = at_page(states_, page);
  if (state.next == kNever) {
    const bool is_held = state.is_held;
    if (is_held) leave(page);
    state.next = number;
    if (is_held) enter(page);
  } else {
    future_[state.last_expected - now_].next_of_page = number;
  }
  state.last_expected = number;
  future_.push_back({page, kNever});
}

void FarthestFuture::expect_nothing() {
  while (!future_.empty()) move_on();
}

// The first known reference is past, whether it was what came or not.
void FarthestFuture::move_on() {
  if (!future_.empty()) {
    const Expected past = future_.front();
    future_.pop_front();
    State& state = states_[raw(past.page)];
    const bool is_held = state.is_held;
    if (is_held) leave(past.page);
    state.next = past.next_of_page;
    if (is_held) enter(past.page);
  }
  ++now_;
}

bool FarthestFuture::reference(PageId page) {
  evicted_.clear();
  move_on();
  State& state = at_page(states_, page);
  const bool is_hit = state.is_held;
  if (is_hit) {
    leave(page);
  } else if (held_.size() == capacity()) {
    evicted_.push_back(held_.rbegin()->second);
    leave(evicted_.back());
  }
  state.used = now_;
  enter(page);
  return is_hit;
}

// It stays in the known future, where it is an unknown page like any other.
void FarthestFuture::forget(PageId page) {
  if (holds(page)) leave(page);
}

}  // namespace cairn
