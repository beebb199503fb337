// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/segment_score.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cairn {

SegmentScore::SegmentScore(std::uint32_t capacity, std::uint64_t seed)
    : Expert(capacity),
      step_(std::max(1.0, static_cast<double>(capacity) / kStepsPerCapacity)),
      random_(seed) {}

double SegmentScore::log_score(PageId page) const {
  const History& history = histories_[raw(page)];
  const unsigned known = std::min(history.count, kReferencesMax);
  const double fading = std::log(2.0) / (step_ * history.count);
  std::array<double, kReferencesMax> exponents;
  double largest = -std::numeric_limits<double>::infinity();
  for (unsigned at = 0; at < known; ++at) {
    exponents[at] = -fading * static_cast<double>(now_ - history.times[at]);
    largest = std::max(largest, exponents[at]);
  }
  double sum = 0;
  for (unsigned at = 0; at < known; ++at) sum += std::exp(exponents[at] - largest);
  return largest + std::log(sum);
}

bool SegmentScore::reference(PageId page) {
  evicted_.clear();
  ++now_;
  const bool is_hit = holds(page);
  if (!is_hit && pages_.size() == capacity()) {
    PageId lowest = kNoPage;
    double score = std::numeric_limits<double>::infinity();
    for (unsigned draw = 0; draw < kDrawn; ++draw) {
      const PageId drawn = pages_.at(random_.below(pages_.size()));
      const double its = log_score(drawn);
      if (lowest == kNoPage || its < score) {
        lowest = drawn;
        score = its;
      }
    }
    pages_.remove(lowest);
    evicted_.push_back(lowest);
  }
  if (!is_hit) {
    at_page(histories_, page) = History{};
    pages_.add(page);
  }
  History& history = histories_[raw(page)];
  history.times[history.count++ % kReferencesMax] = now_;
  return is_hit;
}

void SegmentScore::forget(PageId page) {
  if (holds(page)) pages_.remove(page);
}

}  // namespace cairn
