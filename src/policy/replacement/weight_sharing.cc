// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/weight_sharing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace cairn {

void WeightSharing::touch(PageId page) {
  State& state = at_page(states_, page);
  if (state.uses != 0) {
    by_frequency_.erase({state.uses, state.last, page});
    by_recency_.remove(page);
  }
  ++state.uses;
  state.last = ++now_;
  by_frequency_.insert({state.uses, state.last, page});
  by_recency_.push_front(0, page);
}

void WeightSharing::drop(PageId page) {
  State& state = states_[raw(page)];
  by_frequency_.erase({state.uses, state.last, page});
  by_recency_.remove(page);
  held_.remove(page);
  state.uses = 0;
}

bool WeightSharing::reference(PageId page) {
  evicted_.clear();
  if (holds(page)) {
    touch(page);
    return true;
  }
  ++misses_;
  const State before = at_page(states_, page);
  if (before.evicted_in == epoch_) {
    for (unsigned expert = 0; expert < kExperts; ++expert)
      mispredictions_[expert] += before.named_by >> expert & 1;
  }
  if (held_.size() == capacity()) evict();
  held_.add(page);
  CAIRN_DCHECK(held_.size() <= capacity());
  touch(page);
  if (misses_ >= kPollsPerEpoch) end_epoch();
  return false;
}

void WeightSharing::evict() {
  const std::array<PageId, kExperts> named = {by_recency_.back(0),
                                              std::get<PageId>(*by_frequency_.begin()),
                                              held_.at(random_.below(held_.size()))};
  const auto decides = std::max_element(weights_.begin(), weights_.end()) - weights_.begin();
  const PageId victim = named[static_cast<std::size_t>(decides)];
  CAIRN_DCHECK(holds(victim));
  State& state = states_[raw(victim)];
  state.evicted_in = epoch_;
  state.named_by = 0;
  for (unsigned expert = 0; expert < kExperts; ++expert) {
    if (named[expert] == victim) state.named_by |= static_cast<std::uint8_t>(1U << expert);
  }
  drop(victim);
  evicted_.push_back(victim);
}

void WeightSharing::end_epoch() {
  double lost = 0;
  for (unsigned expert = 0; expert < kExperts; ++expert) {
    const std::uint32_t wrong = mispredictions_[expert];
    if (wrong == 0 || wrong < kThreshold * misses_) continue;
    const double before = weights_[expert];
    weights_[expert] *= std::pow(kPenalty, wrong);
    lost += before - weights_[expert];
  }
  for (double& weight : weights_) weight += kShared * lost / kExperts;
  const double sum = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  CAIRN_CHECK(sum > 0);
  for (double& weight : weights_) weight /= sum;
  mispredictions_.fill(0);
  misses_ = 0;
  ++epoch_;
}

void WeightSharing::forget(PageId page) {
  if (holds(page)) drop(page);
  if (raw(page) < states_.size()) states_[raw(page)] = State{};
}

}  // namespace cairn
