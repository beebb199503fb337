// SPDX-License-Identifier: Apache-2.0
// Writing to a block that is in a file tier and stays there.
#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "base/signal_gate.h"
#include "memory/buffer/write_part.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// The bytes of whole pages of a block, in the thread's bounce memory.
struct BouncedPages {
  std::byte* block = nullptr;  // where byte 0 of the block would be
  std::size_t first = 0;       // in the block
  std::size_t past = 0;

  std::uint16_t mask() const { return pages_touched(first, past); }
};

// Makes the pages that the part touches as they are after the write. 0 or -errno.
int merge_pages(const ObjectAccess& access, const LockedBlock& block, const WritePart& part,
                const BouncedPages& pages) {
  const NodeMemory& memory = *access.actor.memory;
  const BlockDescriptor& descriptor = block.descriptor();
  for (std::size_t page = pages.first; page < pages.past; page += kPageBytes) {
    const std::uint16_t bit = pages_touched(page, page + 1);
    if ((bit & partial_pages(part)) == 0) continue;
    if ((bit & descriptor.valid_pages()) != 0) {
      if (memory.place_of(block.bucket(), page, kPageBytes).read(pages.block + page) == 0) continue;
      // Where the tier fails, the store has what is clean.
      if ((bit & descriptor.dirty_pages()) != 0) return -EIO;
    }
    const ssize_t got =
        read_store(access, offset_of(part.number) + page, pages.block + page, kPageBytes);
    if (got < 0) return static_cast<int>(got);
  }
  return user_copy(pages.block + part.begin, part.in, part.length()) > 0 ? -EFAULT : 0;
}

// Puts all of the part into the store, which may take it bit by bit: what it says of the rest is
// what is wrong with it. 0 or -errno.
int store_all(const ObjectAccess& access, WritePart part) {
  while (part.length() > 0) {
    const ssize_t put = store_part(access, part);
    if (put <= 0) return put == 0 ? -EIO : static_cast<int>(put);
    part.begin += static_cast<std::size_t>(put);
    part.in += put;
  }
  return 0;
}

// The tier does not take the pages of a write: they go to the store and leave the block. 0 or
// -errno; -EAGAIN when the block is to be looked for again. Requires: the lock.
[[gnu::noinline]] int store_instead(const ObjectAccess& access, LockedBlock& block,
                                    const WritePart& part, const BouncedPages& pages) {
  UnclaimedBlock unclaimed(block);
  if (!unclaimed) {
    static_cast<LockedBlock&&>(block).unlock_and_wait();
    return -EAGAIN;
  }
  const std::uint64_t start = offset_of(part.number);
  const std::uint64_t size =
      std::max(access.object().size.load(std::memory_order_acquire), part.file_end());
  const std::size_t end = std::min<std::uint64_t>(pages.past, size - start);
  const WritePart whole{part.number, pages.first, end, pages.block + pages.first};
  if (const int error = store_all(access, whole); error < 0) return error;
  const auto kept =
      static_cast<std::uint16_t>(unclaimed.descriptor().valid_pages() & ~pages.mask());
  if (kept != 0) {
    unclaimed.cut(kept);
  } else {
    discard_block(access.actor, static_cast<UnclaimedBlock&&>(unclaimed),
                  PlacementReason::kTierFailed);
  }
  return 0;
}

}  // namespace

int put_into_file_tier(const ObjectAccess& access, LockedBlock& block, const WritePart& part) {
  const NodeMemory& memory = *access.actor.memory;
  CAIRN_DCHECK(part.begin < part.end && part.end <= kBlockBytes);
  CAIRN_DCHECK(!block.is_claimed() && !memory.in_memory(block.bucket()));
  const BouncedPages pages{access.actor.bounce_blocks(), part.begin / kPageBytes * kPageBytes,
                           (part.end + kPageBytes - 1) / kPageBytes * kPageBytes};
  if (pages.block == nullptr) return -ENOMEM;
  if (const int error = merge_pages(access, block, part, pages); error < 0) return error;
  const bool is_fresh = block.descriptor().valid_pages() == 0;
  int error = -EIO;
  if (memory.takes_blocks(memory.tier_of(block.bucket()))) {
    WritableBlock writable(block, pages.mask());
    error = memory.place_of(block.bucket(), pages.first, pages.past - pages.first)
                .write(pages.block + pages.first);
    if (__builtin_expect(error == 0, 1)) {
      writable.commit();
      access.object().extend_to(part.file_end());
      return 0;
    }
  }
  return is_fresh ? error : store_instead(access, block, part, pages);
}

}  // namespace cairn
