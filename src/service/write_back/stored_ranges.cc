// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/stored_ranges.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "memory/buffer/block_access.h"

namespace cairn::node {
namespace {

// Pages of the block that [begin, end) touches.
std::uint16_t pages_in(std::uint64_t block_begin, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t from = std::max(begin, block_begin) - block_begin;
  const std::uint64_t to = std::min(end, block_begin + kBlockBytes) - block_begin;
  std::uint16_t pages = 0;
  for (std::uint64_t page = from / kPageBytes; page * kPageBytes < to; ++page)
    pages = static_cast<std::uint16_t>(pages | 1U << page);
  return pages;
}

std::uint16_t valid_pages(const NodeMemory& memory, ObjectIndex object, BlockNumber number) {
  const BucketIndex bucket = memory.directory().find(object, number);
  return bucket == BucketIndex::kNone ? 0 : memory.block(bucket).valid_pages();
}

// Ends at the first page that no tier has. To look at each block of a sparse file may take days.
bool is_all_there(const NodeMemory& memory, ObjectIndex object, std::uint64_t begin,
                  std::uint64_t end) {
  if (end > kBlockableBytes) return false;
  for (std::uint64_t at = begin / kBlockBytes * kBlockBytes; at < end; at += kBlockBytes) {
    if ((pages_in(at, begin, end) & ~valid_pages(memory, object, block_of(at))) != 0) return false;
  }
  return true;
}

bool is_any_there(const NodeMemory& memory, ObjectIndex object, std::uint64_t begin,
                  std::uint64_t end) {
  Actor looker;
  looker.memory = &memory;
  end = std::min(end, kBlockableBytes);
  bool is_any = false;
  if (begin >= end) return is_any;
  for_each_resident(looker, object, raw(block_of(begin)), (end - 1) / kBlockBytes + 1,
                    [&](BlockNumber number) {
                      const std::uint16_t wanted = pages_in(offset_of(number), begin, end);
                      is_any = is_any || (wanted & valid_pages(memory, object, number)) != 0;
                    });
  return is_any;
}

}  // namespace

StoredRanges StoredRanges::everything() {
  StoredRanges all;
  all.add(0, UINT64_MAX);
  all.is_exact_ = false;
  return all;
}

void StoredRanges::add(std::uint64_t begin, std::uint64_t end) {
  CAIRN_CHECK(begin <= end);
  if (begin == end) return;
  auto at = ranges_.upper_bound(begin);
  if (at != ranges_.begin() && std::prev(at)->second >= begin) {
    --at;
    begin = at->first;
  }
  while (at != ranges_.end() && at->first <= end) {
    end = std::max(end, at->second);
    at = ranges_.erase(at);
  }
  ranges_.emplace(begin, end);
  if (ranges_.size() <= kRangesMax) return;
  const std::uint64_t low = ranges_.begin()->first;
  const std::uint64_t high = ranges_.rbegin()->second;
  ranges_ = {{low, high}};
  is_exact_ = false;
}

void StoredRanges::add(const StoredRanges& more) {
  for (const auto& [begin, end] : more.ranges_) add(begin, end);
  is_exact_ = is_exact_ && more.is_exact_;
}

void StoredRanges::subtract(const StoredRanges& stored) {
  if (!stored.is_exact_) return;
  for (const auto& [begin, end] : stored.ranges_) {
    auto at = ranges_.upper_bound(begin);
    if (at != ranges_.begin()) --at;
    while (at != ranges_.end() && at->first < end) {
      const auto [had_begin, had_end] = *at;
      if (had_end <= begin) {
        ++at;
        continue;
      }
      at = ranges_.erase(at);
      if (had_begin < begin) ranges_.emplace(had_begin, begin);
      if (had_end > end) ranges_.emplace(end, had_end);
    }
  }
}

StoredRanges::Residency StoredRanges::in_tiers(const NodeMemory& memory, ObjectIndex object) const {
  const std::uint64_t size = memory.objects().at(object).size.load();
  bool has_some = false;
  bool has_all = true;
  for (const auto& [begin, last] : ranges_) {
    const std::uint64_t end = std::min(last, size);
    if (begin >= end) continue;
    has_all = has_all && is_all_there(memory, object, begin, end);
    has_some = has_some || is_any_there(memory, object, begin, end);
    if (has_some && !has_all) return Residency::kSome;
  }
  if (has_all) return Residency::kAll;
  return has_some ? Residency::kSome : Residency::kNone;
}

StoredRanges RecordedRanges::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(ranges_, {});
}

}  // namespace cairn::node
