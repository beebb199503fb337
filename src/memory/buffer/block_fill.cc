// SPDX-License-Identifier: Apache-2.0
// What a block gets from the backing store.
#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/store_demand.h"
#include "memory/tiers/page_seals.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// Counts what a fresh block got from the backing store.
void note_filled(const NodeMemory& memory, const LockedBlock& block, std::size_t bytes) {
  if (bytes == 0) return;
  const bool staged = block.descriptor().reason() == PlacementReason::kStaged;
  memory.journal().note(MoveJournal::kStore, raw(memory.tier_of(block.bucket())),
                        staged ? PlacementReason::kStaged : PlacementReason::kRead, bytes);
}

}  // namespace

ssize_t read_store(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                   std::size_t length) {
  ssize_t got = 0;
  const std::uint64_t stored = access.object().store_size.load(std::memory_order_acquire);
  if (offset < stored) {
    const StoreDemand demand(access.actor);
    got = access.backing.read(offset, out, std::min<std::uint64_t>(length, stored - offset));
  }
  if (got < 0) return got;
  const auto had = static_cast<std::size_t>(got);
  CAIRN_DCHECK(had <= length);
  if (had < length && zero_shared(out + had, length - had) > 0) return -EFAULT;
  return got;
}

int fill_missing_pages(const ObjectAccess& access, LockedBlock& block, BlockNumber number,
                       std::uint16_t pages) {
  const auto missing = static_cast<std::uint16_t>(pages & ~block.descriptor().valid_pages());
  std::byte* const bytes = access.actor.memory->bytes(block.bucket());
  CAIRN_DCHECK(missing != 0 && missing >> pages_in(block.descriptor().size_class()) == 0);
  CAIRN_DCHECK(block.descriptor().block_number() == number);
  std::size_t from_store = 0;
  unsigned page = 0;
  while (page < kPagesPerBlock) {
    if ((missing >> page & 1) == 0) {
      ++page;
      continue;
    }
    unsigned past = page;
    while (past < kPagesPerBlock && (missing >> past & 1) != 0) ++past;
    const std::uint64_t begin = offset_of(number) + page * kPageBytes;
    const ssize_t got =
        read_store(access, begin, bytes + page * kPageBytes, (past - page) * kPageBytes);
    if (got < 0) return static_cast<int>(got);
    from_store += static_cast<std::size_t>(got);
    page = past;
  }
  block.fill(missing);
  note_filled(*access.actor.memory, block, from_store);
  return 0;
}

int fill_and_seal(const ObjectAccess& access, LockedBlock& block, BlockNumber number,
                  std::uint16_t pages) {
  const auto missing = static_cast<std::uint16_t>(pages & ~block.descriptor().valid_pages());
  const int error = fill_pages(access, block, number, pages);
  if (error == 0 && missing != 0) seal_filled(*access.actor.memory, block, missing);
  return error;
}

int fill_in_file_tier(const ObjectAccess& access, LockedBlock& block, BlockNumber number) {
  Actor& actor = access.actor;
  const NodeMemory& memory = *actor.memory;
  CAIRN_DCHECK(!memory.in_memory(block.bucket()) && block.descriptor().valid_pages() == 0);
  std::byte* bounce = actor.bounce_blocks();
  if (bounce == nullptr) return -ENOMEM;
  const ssize_t got = read_store(access, offset_of(number), bounce, kBlockBytes);
  if (got < 0) return static_cast<int>(got);
  if (const int error = memory.place_of(block.bucket()).write(bounce); error < 0) return error;
  block.fill(kAllPages);
  note_filled(memory, block, static_cast<std::size_t>(got));
  return 0;
}

}  // namespace cairn
