// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/learned_reuse.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace cairn {

LearnedReuse::LearnedReuse(std::uint32_t capacity, const Options& options)
    : Expert(capacity),
      options_(options),
      remembered_(std::uint64_t{options.remembered_capacities} * capacity),
      times_(capacity),
      random_(options.seed) {
  CAIRN_CHECK(std::has_single_bit(options.learn_from_one_in));
}

bool LearnedReuse::is_sampled(PageId page) const {
  return (raw(page) * 2654435761U >> 16 & (options_.learn_from_one_in - 1)) == 0;
}

// The page is referenced now.
void LearnedReuse::note(PageId page, History& history) {
  std::uint64_t interval = history.times_seen != 0 ? now_ - history.last : 0;
  const bool is_too_old = interval > remembered_ && !holds(page);
  if (is_too_old) {
    if (is_sampled(page)) times_.note_given_up(history.page_class);
    history = History{};
    interval = 0;
  } else if (history.times_seen != 0 && is_sampled(page)) {
    times_.note_reuse(history.page_class, interval);
  }
  history.last = now_;
  if (history.times_seen != UINT32_MAX) ++history.times_seen;
  history.page_class = static_cast<std::uint16_t>(times_.class_of(history.times_seen, interval));
}

bool LearnedReuse::reference(PageId page) {
  evicted_.clear();
  ++now_;
  const bool is_hit = holds(page);
  if (is_hit) by_class_.remove(page);
  note(page, at_page(histories_, page));
  if (now_ >= learns_at_) learn();
  if (!is_hit) {
    if (held_.size() == capacity()) evict();
    held_.add(page);
  }
  by_class_.push_front(histories_[raw(page)].page_class, page);
  return is_hit;
}

void LearnedReuse::learn() {
  std::vector<ReuseTimes::Histogram> waiting(ReuseTimes::kClasses, ReuseTimes::Histogram{});
  for (std::uint32_t number = 0; number < histories_.size(); ++number) {
    History& history = histories_[number];
    const auto page = static_cast<PageId>(number);
    if (history.times_seen == 0) continue;
    const std::uint64_t age = now_ - history.last;
    if (age > remembered_ && !holds(page)) {
      if (is_sampled(page)) times_.note_given_up(history.page_class);
      history = History{};
    } else if (is_sampled(page)) {
      waiting[history.page_class][ReuseTimes::bin_of(age)] += 1;
    }
  }
  times_.learn(std::move(waiting));
  // Seldom enough to cost little, at first more often.
  const std::uint64_t period = std::max<std::uint64_t>(512, capacity());
  learns_at_ = now_ + std::min(period, std::max(kLearnsFirst, now_ / 2));
}

void LearnedReuse::evict() {
  PageId victim = kNoPage;
  float lowest = std::numeric_limits<float>::infinity();
  std::uint64_t last = 0;
  const auto consider = [&](PageId page) {
    const History& history = histories_[raw(page)];
    const float index = times_.index(history.page_class, now_ - history.last);
    if (index > lowest || (index == lowest && history.last >= last)) return;
    victim = page;
    lowest = index;
    last = history.last;
  };
  for (unsigned page_class = 0; page_class < ReuseTimes::kClasses; ++page_class) {
    if (by_class_.size(page_class) == 0) continue;
    consider(by_class_.back(page_class));
    consider(by_class_.front(page_class));
  }
  for (unsigned draw = 0; draw < kDrawn; ++draw) consider(held_.at(random_.below(held_.size())));
  CAIRN_DCHECK(victim != kNoPage && holds(victim));
  by_class_.remove(victim);
  held_.remove(victim);
  evicted_.push_back(victim);
}

void LearnedReuse::forget(PageId page) {
  if (!remembers(page)) return;
  if (holds(page)) {
    held_.remove(page);
    by_class_.remove(page);
  }
  histories_[raw(page)] = History{};
}

}  // namespace cairn
