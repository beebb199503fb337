// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/sampled_stream.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

constexpr std::size_t kDroppedMin = 4096;
constexpr std::uint32_t kNoNumber = UINT32_MAX;

// What becomes of each number when those of dropped pages are given to others.
std::vector<std::uint32_t> renumbered(const std::vector<bool>& is_dropped) {
  std::vector<std::uint32_t> numbers(is_dropped.size(), kNoNumber);
  std::uint32_t next = 0;
  for (std::size_t number = 0; number < numbers.size(); ++number) {
    if (!is_dropped[number]) numbers[number] = next++;
  }
  return numbers;
}

}  // namespace

SampledStream::SampledStream(const SampledStreamLimits& limits)
    : limits_(limits), sample_(limits.pages_max, limits.seed) {
  CAIRN_CHECK(limits.references_max > 0);
  CAIRN_CHECK(limits.references_max < std::size_t{1} << 31);
}

void SampledStream::reference_sampled(std::uint64_t hash) {
  if (sampled_references() >= limits_.references_max) {
    make_room();
    if (is_full_ || !sample_.takes(hash)) return;
  }
  PageTable::Page& page = pages_.use(hash);
  const bool is_new = page.uses == 1;
  if (is_new) {
    page.value = static_cast<std::uint32_t>(is_dropped_.size());
    is_dropped_.push_back(false);
  }
  kept_.push_back(page.value);
  if (!is_new) return;
  sample_.add(hash);
  if (sample_.is_too_large()) drop_highest();
  CAIRN_DCHECK(pages_.size() == sample_.size());
}

void SampledStream::make_room() {
  const std::size_t pages_min = std::max<std::size_t>(limits_.pages_max / 4, 1);
  while (sample_.size() > pages_min && sampled_references() >= limits_.references_max) {
    drop_highest();
  }
  if (sampled_references() < limits_.references_max) return;
  is_full_ = true;
  --references_;  // the one that found no room
}

void SampledStream::drop_highest() {
  const PageTable::Page page = pages_.erase(sample_.drop_highest());
  CAIRN_DCHECK(page.uses > 0);
  CAIRN_DCHECK(!is_dropped_[page.value]);
  is_dropped_[page.value] = true;
  dropped_references_ += page.uses;
  CAIRN_DCHECK(dropped_references_ <= kept_.size());
  if (dropped_references_ > std::max(kDroppedMin, sampled_references())) remove_dropped();
}

void SampledStream::remove_dropped() {
  const std::vector<std::uint32_t> numbers = renumbered(is_dropped_);
  std::erase_if(kept_, [&](std::uint32_t number) { return numbers[number] == kNoNumber; });
  for (std::uint32_t& number : kept_) number = numbers[number];
  pages_.for_each([&](PageTable::Page& page) { page.value = numbers[page.value]; });
  is_dropped_.assign(pages_.size(), false);
  dropped_references_ = 0;
}

std::vector<PageId> SampledStream::numbered_pages() const {
  const std::vector<std::uint32_t> numbers = renumbered(is_dropped_);
  std::vector<PageId> pages;
  pages.reserve(sampled_references());
  for (const std::uint32_t number : kept_) {
    if (numbers[number] != kNoNumber) pages.push_back(PageId{numbers[number]});
  }
  CAIRN_DCHECK(pages.size() == sampled_references());
  return pages;
}

std::size_t SampledStream::memory_bytes() const {
  return sample_.memory_bytes() + pages_.memory_bytes() + is_dropped_.capacity() / 8 +
         kept_.capacity() * sizeof(kept_[0]);
}

}  // namespace cairn
