// SPDX-License-Identifier: Apache-2.0
// The least cost of a placement, found by trying every one: the yardstick of the dynamic programme.
// It knows nothing of memos, granule limits or linear costs, and is exponential in everything.
//
// Thread safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace cairn::testing {

// Rooms and amounts are counted in blocks.
struct SearchTier {
  unsigned room = 0;
  unsigned movable = 0;
};

struct SearchCosts {
  std::function<double(std::size_t tier, unsigned blocks)> place;
  std::function<double(std::size_t tier, unsigned blocks)> move;
  std::function<double(unsigned blocks)> store;
  double room = 0;
};

class ExhaustiveSearch {
 public:
  ExhaustiveSearch(std::vector<SearchTier> tiers, SearchCosts costs)
      : tiers_(std::move(tiers)), costs_(std::move(costs)) {}

  double least_cost(unsigned blocks) {
    least_ = std::numeric_limits<double>::infinity();
    place(0, blocks, 0);
    return least_;
  }
  std::uint64_t tried() const { return tried_; }

 private:
  // `cost` is what was spent above tier `at`.
  void place(std::size_t at, unsigned blocks, double cost) {
    if (blocks == 0 || at == tiers_.size()) {
      finish(cost + (blocks == 0 ? 0 : costs_.store(blocks)));
      return;
    }
    const SearchTier& tier = tiers_[at];
    place(at + 1, blocks, cost);
    for (unsigned here = 1; here <= std::min(blocks, tier.room); ++here) {
      place(at + 1, blocks - here, cost + costs_.place(at, here));
    }
    if (blocks > tier.room && blocks - tier.room <= tier.movable) {
      move(at + 1, blocks - tier.room, cost + costs_.room + costs_.place(at, blocks));
    }
  }

  void move(std::size_t at, unsigned blocks, double cost) {
    if (blocks == 0) return finish(cost);
    if (at == tiers_.size()) return;
    const SearchTier& tier = tiers_[at];
    move(at + 1, blocks, cost);
    for (unsigned here = 1; here <= std::min(blocks, tier.room); ++here) {
      move(at + 1, blocks - here, cost + costs_.move(at, here));
    }
    if (blocks > tier.room && blocks - tier.room <= tier.movable) {
      move(at + 1, blocks - tier.room, cost + costs_.room + costs_.move(at, blocks));
    }
  }

  void finish(double cost) {
    ++tried_;
    least_ = std::min(least_, cost);
  }

  std::vector<SearchTier> tiers_;
  SearchCosts costs_;
  double least_ = 0;
  std::uint64_t tried_ = 0;
};

}  // namespace cairn::testing
