// SPDX-License-Identifier: Apache-2.0
// farthest-in-future: knows a piece of the future, such as a shuffle with a known seed or a loop
// that the prefetcher has recognised. First the pages leave that this piece does not want at all,
// the longest unused first; then those that it wants last. With the whole future known this is MIN
// (Belady: "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
// 5(2), 1966), and no policy misses less.
//
// The known piece begins with the next reference and moves on by one with each.
//
// Thread safety: none. Ownership: additionally sixteen bytes for every reference that is known
// beforehand.
#pragma once

#include <deque>
#include <set>
#include <utility>

#include "policy/replacement/expert.h"

namespace cairn {

class FarthestFuture final : public Expert {
 public:
  explicit FarthestFuture(std::uint32_t capacity) : Expert(capacity) {}

  const char* name() const override { return "farthest-in-future"; }
  // The reference behind all that are known.
  void expect(PageId page);
  // The future that was foretold is not true any more.
  void expect_nothing();
  std::size_t known_ahead() const { return future_.size(); }

  bool reference(PageId page) override;
  bool holds(PageId page) const override { return state_of(page).is_held; }
  bool remembers(PageId page) const override {
    const State state = state_of(page);
    return state.is_held || state.next != kNever;
  }
  void forget(PageId page) override;

 private:
  static constexpr std::uint64_t kNever = UINT64_MAX;
  struct State {
    bool is_held = false;
    std::uint64_t next = kNever;           // number of the next known reference to it
    std::uint64_t last_expected = kNever;  // and of the last one
    std::uint64_t used = 0;                // number of the reference that came last
  };
  struct Expected {
    PageId page;
    std::uint64_t next_of_page;
  };
  State state_of(PageId page) const { return at_page_or(states_, page, State{}); }
  // The page that leaves first stands last: one that is never wanted, the longest unused of these.
  std::pair<std::uint64_t, std::uint64_t> rank(const State& state) const {
    return {state.next, state.next == kNever ? kNever - state.used : 0};
  }
  void move_on();
  void enter(PageId page);
  void leave(PageId page);

  std::vector<State> states_;
  std::deque<Expected> future_;
  std::uint64_t now_ = 0;  // number of the first of future_
  std::set<std::pair<std::pair<std::uint64_t, std::uint64_t>, PageId>> held_;
};

}  // namespace cairn
