// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/frequency_expert.h"

namespace cairn {

bool FrequencyExpert::reference(PageId page) {
  evicted_.clear();
  const bool is_hit = holds(page);
  if (is_hit) {
    order_.erase(rank(page, uses_[raw(page)]));
  } else if (order_.size() == capacity()) {
    evicted_.push_back(std::get<PageId>(*order_.begin()));
    order_.erase(order_.begin());
    uses_[raw(evicted_.back())] = Use{};
  }
  Use& use = at_page(uses_, page);
  use = Use{use.count + 1, ++now_};
  order_.insert(rank(page, use));
  return is_hit;
}

void FrequencyExpert::forget(PageId page) {
  if (!holds(page)) return;
  order_.erase(rank(page, uses_[raw(page)]));
  uses_[raw(page)] = Use{};
}

}  // namespace cairn
