// SPDX-License-Identifier: Apache-2.0
// Traffic whose locality decays: pages come at rate 1, each is used when it comes and a Poisson
// number of times more, and such a use becomes exponentially less likely with the page's age. The
// model of "Performance Models for a Two-tiered Storage System", section 6.1: LRU suits it, because
// pages that are past their lifetime are the ones that it evicts.
//
// Thread safety: none. Ownership: the uses to come of pages that are there, which are about
// repeats * lifetime.
#pragma once

#include <cstdint>
#include <queue>
#include <vector>

#include "base/random_source.h"
#include "policy/traffic/page_use.h"

namespace cairn {

struct PoissonTrafficShape {
  double repeats = 8;    // mean uses of a page after its first, 0 or more
  double lifetime = 20;  // mean age of a page at such a use, in arrivals of pages; more than 0
};

class PoissonTraffic {
 public:
  // Requires: a shape within its bounds.
  PoissonTraffic(PoissonTrafficShape shape, std::uint64_t seed);
  // Pages are numbered in the order in which they come. It never ends.
  PageUse next();

 private:
  struct Later {
    bool operator()(const PageUse& left, const PageUse& right) const {
      return left.time > right.time;
    }
  };

  PageUse take_arrival();

  const PoissonTrafficShape shape_;
  RandomSource random_;
  std::priority_queue<PageUse, std::vector<PageUse>, Later> uses_;
  PageUse arrival_;  // of the next page
};

}  // namespace cairn
