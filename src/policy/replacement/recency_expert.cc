// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/recency_expert.h"

namespace cairn {

const char* RecencyExpert::name() const {
  if (order_ == Order::kFifo) return "fifo";
  return order_ == Order::kLru ? "lru" : "mru";
}

bool RecencyExpert::reference(PageId page) {
  evicted_.clear();
  const bool is_hit = holds(page);
  if (is_hit && order_ == Order::kFifo) return true;
  if (is_hit) {
    pages_.remove(page);
  } else if (pages_.size(0) == capacity()) {
    const PageId victim = order_ == Order::kMru ? pages_.front(0) : pages_.back(0);
    pages_.remove(victim);
    evicted_.push_back(victim);
  }
  pages_.push_front(0, page);
  return is_hit;
}

void RecencyExpert::forget(PageId page) {
  if (holds(page)) pages_.remove(page);
}

}  // namespace cairn
