// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/stack_distances.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::size_t kTimesMin = 1024;
// The time line has room for so many references to each page, so that new numbers cost little.
constexpr std::size_t kTimesPerPage = 8;
constexpr std::size_t kStackPagesMax = std::size_t{1} << 28;
static_assert(kStackPagesMax * kTimesPerPage < UINT32_MAX - 64);

}  // namespace

StackDistances::StackDistances() { times_.reset(kTimesMin, 0); }

// The order of the last uses stays, so no distance changes.
void StackDistances::renumber() {
  CAIRN_CHECK(pages_.size() <= kStackPagesMax);
  const std::vector<std::uint32_t> words = times_.marked_before_words();
  pages_.for_each([&](PageTable::Page& page) {
    page.value = times_.marked_before(page.value, words);
    CAIRN_DCHECK(page.value < times_.marked());
  });
  now_ = times_.marked();
  times_.reset(std::max(kTimesMin, std::size_t{now_} * kTimesPerPage), now_);
}

std::uint64_t StackDistances::reference(std::uint64_t key) {
  if (now_ == times_.length()) renumber();
  PageTable::Page& page = pages_.use(key);
  const std::uint32_t before = page.value;
  page.value = now_++;
  if (page.uses == 1) {
    times_.mark(page.value);
    CAIRN_DCHECK(times_.marked() == pages_.size());
    return kCold;
  }
  const std::uint32_t distance = times_.marked() - times_.marked_before(before);
  times_.clear(before);
  times_.mark(page.value);
  CAIRN_DCHECK(distance >= 1);
  return distance;
}

void StackDistances::forget(std::uint64_t key) {
  const PageTable::Page page = pages_.erase(key);
  if (page.uses == 0) return;
  times_.clear(page.value);
  CAIRN_DCHECK(times_.marked() == pages_.size());
}

}  // namespace cairn
