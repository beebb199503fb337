// SPDX-License-Identifier: Apache-2.0
#include "policy/replacement/s3_fifo.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {

S3Fifo::S3Fifo(std::uint32_t capacity)
    : Expert(capacity),
      small_capacity_(std::max(1U, static_cast<std::uint32_t>(capacity * kSmallShare))),
      main_capacity_(std::max(1U, capacity - std::min(capacity, small_capacity_))) {}

bool S3Fifo::reference(PageId page) {
  evicted_.clear();
  if (holds(page)) {
    std::uint8_t& uses = uses_[raw(page)];
    uses = static_cast<std::uint8_t>(std::min<int>(uses + 1, kUsesMax));
    return true;
  }
  const bool came_back = queues_.is_on(kGone, page);
  if (came_back) queues_.remove(page);
  if (queues_.size(kSmall) + queues_.size(kMain) >= capacity()) {
    is_filling_ = false;
    evict();
  }
  CAIRN_DCHECK(queues_.size(kSmall) + queues_.size(kMain) < capacity());
  at_page(uses_, page) = 0;
  const bool overflows = is_filling_ && queues_.size(kSmall) >= small_capacity_;
  queues_.push_front(came_back || overflows ? kMain : kSmall, page);
  return false;
}

void S3Fifo::evict() {
  while (queues_.size(kMain) <= main_capacity_ && queues_.size(kSmall) != 0) {
    const PageId page = queues_.back(kSmall);
    queues_.remove(page);
    if (uses_[raw(page)] > 1) {
      uses_[raw(page)] = 0;
      queues_.push_front(kMain, page);
      continue;
    }
    queues_.push_front(kGone, page);
    if (queues_.size(kGone) > main_capacity_) queues_.remove(queues_.back(kGone));
    evicted_.push_back(page);
    return;
  }
  evict_from_main();
}

void S3Fifo::evict_from_main() {
  for (;;) {
    const PageId page = queues_.back(kMain);
    CAIRN_DCHECK(page != kNoPage);
    queues_.remove(page);
    if (uses_[raw(page)] == 0) {
      evicted_.push_back(page);
      return;
    }
    --uses_[raw(page)];
    queues_.push_front(kMain, page);
  }
}

void S3Fifo::forget(PageId page) {
  if (queues_.is_on_any(page)) queues_.remove(page);
}

}  // namespace cairn
