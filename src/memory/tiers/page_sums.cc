// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/page_sums.h"

#include "base/check.h"
#include "memory/tiers/page_hash.h"

namespace cairn {
namespace {

using PageHash = std::uint64_t (*)(const void* page);

PageHash fastest_hash() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return page_hash_avx2;
#endif
  return page_hash;
}

// Calls visit(page, index) for each page of the parts; ends when that says so.
template <typename Visit>
bool for_each_page(std::span<const iovec> parts, Visit&& visit) {
  std::size_t index = 0;
  for (const iovec& part : parts) {
    const auto* bytes = static_cast<const std::byte*>(part.iov_base);
    for (std::size_t at = 0; at < part.iov_len; at += kPageBytes, ++index)
      if (!visit(bytes + at, index)) return false;
  }
  return true;
}

}  // namespace

std::uint32_t page_sum(const void* page) {
  static const PageHash kHash = fastest_hash();
  const auto sum = static_cast<std::uint32_t>(kHash(page));
  return sum == PageSums::kUnknown ? ~PageSums::kUnknown : sum;
}

PageSums::Word* PageSums::first_of(TierExtent extent) const {
  CAIRN_DCHECK(extent.is_whole_pages());
  CAIRN_CHECK(extent.end() / kPageBytes <= pages_);
  return words_ + extent.offset / kPageBytes;
}

std::uint32_t PageSums::of(std::uint64_t offset) const {
  if (!are_kept()) return kUnknown;
  return first_of({offset, kPageBytes})->load(std::memory_order_relaxed);
}

void PageSums::forget(TierExtent extent) const {
  if (!are_kept()) return;
  Word* const words = first_of(extent);
  for (std::size_t page = 0; page < extent.length / kPageBytes; ++page)
    words[page].store(kUnknown, std::memory_order_relaxed);
  // The kernel takes the bytes after this. A call of it is a fence for the compiler; a processor
  // keeps the order of its stores, or orders them with the lock that a reader takes afterwards.
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

void PageSums::note(TierExtent extent, std::span<const iovec> parts) const {
  if (!are_kept()) return;
  Word* const words = first_of(extent);
  for_each_page(parts, [&](const std::byte* page, std::size_t index) {
    CAIRN_DCHECK(index < extent.length / kPageBytes);
    words[index].store(page_sum(page), std::memory_order_relaxed);
    return true;
  });
}

bool PageSums::agree(TierExtent extent, std::span<const iovec> parts) const {
  if (!are_kept()) return true;
  const Word* const words = first_of(extent);
  return for_each_page(parts, [&](const std::byte* page, std::size_t index) {
    CAIRN_DCHECK(index < extent.length / kPageBytes);
    const std::uint32_t known = words[index].load(std::memory_order_relaxed);
    return known == kUnknown || known == page_sum(page);
  });
}

void PageSums::copy(TierExtent extent, const PageSums& from, TierExtent origin) const {
  CAIRN_DCHECK(extent.length == origin.length);
  if (!are_kept() || !from.are_kept()) return;
  Word* const words = first_of(extent);
  const Word* const known = from.first_of(origin);
  for (std::size_t page = 0; page < extent.length / kPageBytes; ++page)
    words[page].store(known[page].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

}  // namespace cairn
