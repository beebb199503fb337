// SPDX-License-Identifier: Apache-2.0
// The independent reference model with lifetimes: each use is of a page that is drawn anew, by
// Zipf's law, and a page that had its share of uses expires. Another one then takes its rank, or
// none. The model of "Performance Models for a Two-tiered Storage System", section 6.1: LFU suits
// it, because it keeps what is popular.
//
// Thread safety: none. Ownership: 40 bytes for each page that is there.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/random_source.h"
#include "policy/traffic/page_use.h"

namespace cairn {

struct IndependentTrafficShape {
  std::uint32_t pages = 1000;  // at the same time; 1 or more
  double alpha = 1;            // rank r is drawn with a weight of r^-alpha; 0 or more
  // Uses of all ranks together until each page has expired once; a page has its weight's share,
  // and at least one.
  std::uint64_t uses = 20'000;
  bool renews = true;  // whether a new page takes the rank of one that has expired
};

class IndependentTraffic {
 public:
  // Requires: a shape within its bounds.
  IndependentTraffic(IndependentTrafficShape shape, std::uint64_t seed);
  // A use per unit of time. The first pages are numbered by rank, the others in the order in which
  // they come. Returns: nothing when all have expired and none is renewed.
  std::optional<PageUse> next();

 private:
  struct Rank {
    std::uint64_t page = 0;
    std::uint64_t left = 0;  // uses until it expires
    std::uint64_t most = 0;
    double weight = 0;
    double weight_to = 0;  // and of all before it in the table
  };

  void expire(Rank& rank);
  void forget_expired();

  const IndependentTrafficShape shape_;
  RandomSource random_;
  std::vector<Rank> ranks_;
  double expired_weight_ = 0;  // of ranks that are still in the table
  std::uint64_t next_page_;
  std::uint64_t used_ = 0;
};

}  // namespace cairn
