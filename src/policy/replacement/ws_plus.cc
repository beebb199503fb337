// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/ws_plus.h"

#include <algorithm>

#include "base/check.h"
#include "policy/replacement/learned_reuse.h"
#include "policy/replacement/lirs.h"
#include "policy/replacement/recency_expert.h"
#include "policy/replacement/s3_fifo.h"

namespace cairn {
namespace {

std::vector<std::unique_ptr<Expert>> default_experts(std::uint32_t capacity) {
  std::vector<std::unique_ptr<Expert>> experts;
  experts.push_back(std::make_unique<LearnedReuse>(capacity));
  experts.push_back(std::make_unique<S3Fifo>(capacity));
  experts.push_back(std::make_unique<Lirs>(capacity));
  experts.push_back(std::make_unique<RecencyExpert>(RecencyExpert::Order::kLru, capacity));
  return experts;
}

}  // namespace

WsPlus::WsPlus(std::uint32_t capacity) : WsPlus(capacity, default_experts(capacity)) {}

WsPlus::WsPlus(std::uint32_t capacity, std::vector<std::unique_ptr<Expert>> experts)
    : Expert(capacity) {
  CAIRN_CHECK(!experts.empty());
  for (auto& expert : experts) {
    CAIRN_CHECK(expert != nullptr);
    Followed followed;
    followed.expert = std::move(expert);
    followed_.push_back(std::move(followed));
  }
}

bool WsPlus::reference(PageId page) {
  evicted_.clear();
  tell_experts(page);
  const bool is_hit = holds(page);
  if (is_hit) {
    held_.remove(page);
    held_.push_front(0, page);
  } else {
    take_in(page);
  }
  consider_change();
  return is_hit;
}

void WsPlus::tell_experts(PageId page) {
  for (std::size_t at = 0; at < followed_.size(); ++at) {
    Followed& followed = followed_[at];
    Expert& expert = *followed.expert;
    followed.is_hit = expert.reference(page);
    if (!followed.is_hit) ++followed.misses;
    if (!followed.is_hit && expert.holds(page) && !holds(page)) ++followed.distance;
    for (const PageId gone : expert.evicted()) {
      if (!holds(gone)) {
        --followed.distance;
      } else if (at == leader_) {
        candidates_.push_back(gone);
      }
    }
  }
}

void WsPlus::take_in(PageId page) {
  ++misses_;
  if (held_.size(0) == capacity()) {
    const PageId victim = next_victim();
    CAIRN_DCHECK(victim != page && holds(victim));
    held_.remove(victim);
    evicted_.push_back(victim);
    for (Followed& followed : followed_)
      followed.distance += followed.expert->holds(victim) ? 1 : 0;
  }
  held_.push_front(0, page);
  for (Followed& followed : followed_) followed.distance -= followed.expert->holds(page) ? 1 : 0;
}

PageId WsPlus::next_victim() {
  PageId victim = next_candidate();
  if (victim == kNoPage) {
    collect_candidates();
    victim = next_candidate();
  }
  // An expert that does not take in every page may hold all that the cache does.
  return victim == kNoPage ? held_.back(0) : victim;
}

PageId WsPlus::next_candidate() {
  while (!candidates_.empty()) {
    const PageId page = candidates_.front();
    candidates_.pop_front();
    if (holds(page) && !leader().holds(page)) return page;
  }
  return kNoPage;
}

// From the longest unused on.
void WsPlus::collect_candidates() {
  candidates_.clear();
  for (PageId page = held_.back(0); page != kNoPage; page = held_.nearer_front(page)) {
    if (!leader().holds(page)) candidates_.push_back(page);
  }
}

void WsPlus::consider_change() {
  const bool leader_missed = !followed_[leader_].is_hit;
  std::size_t best = leader_;
  double best_gain = 0;
  for (std::size_t at = 0; at < followed_.size(); ++at) {
    if (at == leader_) continue;
    Followed& followed = followed_[at];
    const int more = static_cast<int>(leader_missed) - static_cast<int>(!followed.is_hit);
    followed.advantage = std::max(0.0, followed.advantage + more);
    const double gain =
        followed.advantage - price_ * static_cast<double>(followed.distance) - kSlack;
    if (gain > best_gain) {
      best_gain = gain;
      best = at;
    }
  }
  if (best != leader_) change_leader(best);
}

void WsPlus::change_leader(std::size_t leader) {
  CAIRN_DCHECK(leader < followed_.size() && leader != leader_);
  if (stay_.is_set) {
    const auto would_have_missed =
        static_cast<double>(followed_[stay_.leader_before].misses - stay_.misses_before);
    const auto missed = static_cast<double>(misses_ - stay_.cache_misses);
    price_ = missed > would_have_missed ? std::min(kPriceMax, 2 * price_)
                                        : std::max(kPriceMin, 0.8 * price_);
  }
  stay_ = {leader_, followed_[leader_].misses, misses_, true};
  leader_ = leader;
  ++changes_;
  for (Followed& followed : followed_) followed.advantage = 0;
  collect_candidates();
}

bool WsPlus::remembers(PageId page) const {
  return holds(page) || std::any_of(followed_.begin(), followed_.end(), [&](const Followed& one) {
           return one.expert->remembers(page);
         });
}

void WsPlus::forget(PageId page) {
  const bool was_held = holds(page);
  for (Followed& followed : followed_) {
    if (!was_held && followed.expert->holds(page)) --followed.distance;
    followed.expert->forget(page);
  }
  if (was_held) held_.remove(page);
}

}  // namespace cairn
