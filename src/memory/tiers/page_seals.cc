// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/page_seals.h"

#include "base/check.h"

namespace cairn {
namespace {

// Calls visit(page, extent in the RAM tier) for each of the pages, but not for one that a stray
// store into the descriptor puts behind the tier.
template <typename Visit>
void for_each_page(const NodeMemory& memory, BucketIndex bucket, std::uint16_t pages,
                   Visit&& visit) {
  const std::uint64_t begin = memory.pool(TierId::kMemory).offset_of_bucket(bucket);
  for (unsigned left = pages; left != 0; left &= left - 1) {
    const auto page = static_cast<unsigned>(__builtin_ctz(left));
    const TierExtent extent{begin + page * kPageBytes, kPageBytes};
    if (extent.end() <= memory.tier(TierId::kMemory).capacity_bytes()) visit(page, extent);
  }
}

constexpr std::uint16_t bit_of(unsigned page) { return static_cast<std::uint16_t>(1U << page); }

}  // namespace

void seal_filled(const NodeMemory& memory, LockedBlock& block, std::uint16_t pages) {
  const PageSums& sums = memory.sums(TierId::kMemory);
  if (!sums.are_kept()) return;
  CAIRN_DCHECK(memory.in_memory(block.bucket()));
  CAIRN_DCHECK((pages & ~block.descriptor().valid_pages()) == 0);
  std::byte* const bytes = memory.bytes(block.bucket());
  for_each_page(memory, block.bucket(), pages, [&](unsigned page, TierExtent extent) {
    const iovec part{bytes + page * kPageBytes, kPageBytes};
    sums.note(extent, std::span(&part, 1));
  });
  block.seal(pages);
  if (memory.checksums() == Checksums::kAll) block.set_unproven();
}

void seal_carried(const NodeMemory& memory, LockedBlock& block, BucketIndex from) {
  const PageSums& sums = memory.sums(TierId::kMemory);
  if (!sums.are_kept() || !memory.in_memory(block.bucket()) || memory.in_memory(from)) return;
  const TierId below = memory.tier_of(from);
  const std::uint64_t origin = memory.pool(below).offset_of_bucket(from);
  const BlockDescriptor& descriptor = block.descriptor();
  const auto clean =
      static_cast<std::uint16_t>(descriptor.valid_pages() & ~descriptor.dirty_pages());
  std::uint16_t known = 0;
  for_each_page(memory, block.bucket(), clean, [&](unsigned page, TierExtent extent) {
    sums.copy(extent, memory.sums(below), {origin + page * kPageBytes, kPageBytes});
    if (sums.of(extent.offset) != PageSums::kUnknown) known |= bit_of(page);
  });
  block.seal(known);
}

std::uint16_t broken_pages(const NodeMemory& memory, BucketIndex bucket, std::uint32_t sequence) {
  const PageSums& sums = memory.sums(TierId::kMemory);
  if (!sums.are_kept()) return 0;
  const BlockDescriptor& descriptor = memory.block(bucket);
  const std::uint16_t sealed = descriptor.sealed_pages(sequence) & descriptor.valid_pages();
  const std::byte* const bytes = memory.bytes(bucket);
  std::uint16_t broken = 0;
  for_each_page(memory, bucket, sealed, [&](unsigned page, TierExtent extent) {
    if (sums.of(extent.offset) != page_sum(bytes + page * kPageBytes)) broken |= bit_of(page);
  });
  return broken;
}

void forget_broken(const NodeMemory& memory, UnclaimedBlock& block, std::uint16_t broken) {
  CAIRN_DCHECK(memory.in_memory(block.bucket()));
  const BlockDescriptor& descriptor = block.descriptor();
  const auto gone = static_cast<std::uint16_t>(broken & ~descriptor.dirty_pages());
  if (gone == 0) return;
  memory.failure_board().note_broken(TierId::kMemory,
                                     static_cast<unsigned>(__builtin_popcount(gone)));
  block.cut(static_cast<std::uint16_t>(~gone));
}

}  // namespace cairn
