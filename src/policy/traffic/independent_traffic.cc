// SPDX-License-Identifier: Apache-2.0
#include "policy/traffic/independent_traffic.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace cairn {

IndependentTraffic::IndependentTraffic(IndependentTrafficShape shape, std::uint64_t seed)
    : shape_(shape), random_(seed), next_page_(shape.pages) {
  CAIRN_CHECK(shape.pages >= 1 && shape.alpha >= 0 && shape.uses >= 1);
  double total = 0;
  ranks_.reserve(shape.pages);
  for (std::uint32_t rank = 1; rank <= shape.pages; ++rank) {
    const double weight = std::pow(static_cast<double>(rank), -shape.alpha);
    total += weight;
    ranks_.push_back({.page = rank - 1, .weight = weight, .weight_to = total});
  }
  for (Rank& rank : ranks_) {
    const double uses = std::ceil(static_cast<double>(shape.uses) * rank.weight / total);
    rank.most = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(uses));
    rank.left = rank.most;
  }
}

std::optional<PageUse> IndependentTraffic::next() {
  while (!ranks_.empty()) {
    const double drawn = random_.fraction() * ranks_.back().weight_to;
    auto rank = std::ranges::upper_bound(ranks_, drawn, {}, &Rank::weight_to);
    if (rank == ranks_.end()) --rank;  // the product was rounded up
    if (rank->left == 0) continue;
    const PageUse use{static_cast<double>(used_++), rank->page};
    if (--rank->left == 0) expire(*rank);
    return use;
  }
  return std::nullopt;
}

void IndependentTraffic::expire(Rank& rank) {
  if (shape_.renews) {
    rank.page = next_page_++;
    rank.left = rank.most;
    return;
  }
  expired_weight_ += rank.weight;
  // A draw that meets an expired page is repeated: every other one at most.
  if (expired_weight_ * 2 >= ranks_.back().weight_to) forget_expired();
}

void IndependentTraffic::forget_expired() {
  std::erase_if(ranks_, [](const Rank& rank) { return rank.left == 0; });
  double total = 0;
  for (Rank& rank : ranks_) rank.weight_to = total += rank.weight;
  expired_weight_ = 0;
  CAIRN_DCHECK(ranks_.empty() || total > 0);
}

}  // namespace cairn
