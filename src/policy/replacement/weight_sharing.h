// SPDX-License-Identifier: Apache-2.0
// ws: the weight-sharing policy of "Performance Models for a Two-tiered Storage System", section
// 3.1, unchanged, for comparison. Three experts (lru, lfu, random) look at the one cache and name a
// victim each; the most probable one decides. An epoch is four polls of the I/O queue. A miss on a
// page that was evicted in the same epoch is a misprediction of every expert that had named it;
// mispredictions below a quarter of the epoch's misses do not count. At an epoch's end the policy
// adjusts the weights by the Share rule that the paper cites (Blum, Burch: "On-line learning and
// the metrical task system problem", COLT 1997): it halves them for each misprediction, and shares
// out a tenth of the loss equally.
//
// Each poll finds one miss here: the paper does not say how many, and with more the policy is no
// better.
//
// Thread safety: none. Two experts of one seed agree.
#pragma once

#include <array>
#include <set>
#include <tuple>

#include "base/random_source.h"
#include "policy/replacement/page_lists.h"
#include "policy/replacement/page_pool.h"

namespace cairn {

class WeightSharing final : public Expert {
 public:
  explicit WeightSharing(std::uint32_t capacity, std::uint64_t seed = 1)
      : Expert(capacity), random_(seed) {
    weights_.fill(1.0 / kExperts);
  }

  const char* name() const override { return "ws"; }
  bool reference(PageId page) override;
  bool holds(PageId page) const override { return held_.holds(page); }
  bool remembers(PageId page) const override {
    return holds(page) || at_page_or(states_, page, State{}).evicted_in == epoch_;
  }
  void forget(PageId page) override;

  // The weights of lru, lfu and random; their sum is 1.
  static constexpr unsigned kExperts = 3;
  std::array<double, kExperts> weights() const { return weights_; }

 private:
  static constexpr unsigned kPollsPerEpoch = 4;
  static constexpr double kThreshold = 0.25;
  static constexpr double kPenalty = 0.5;
  static constexpr double kShared = 0.1;
  struct State {
    std::uint32_t uses = 0;
    std::uint64_t last = 0;
    std::uint64_t evicted_in = 0;  // epoch
    std::uint8_t named_by = 0;     // bits of the experts
  };
  using Rank = std::tuple<std::uint32_t, std::uint64_t, PageId>;

  void touch(PageId page);
  void drop(PageId page);
  void evict();
  void end_epoch();

  std::vector<State> states_;
  PagePool held_;
  PageLists by_recency_{1};
  std::set<Rank> by_frequency_;
  std::array<double, kExperts> weights_{};
  std::array<std::uint32_t, kExperts> mispredictions_{};
  std::uint32_t misses_ = 0;  // in this epoch
  std::uint64_t epoch_ = 1;
  std::uint64_t now_ = 0;
  RandomSource random_;
};

}  // namespace cairn
