// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/fetch_ahead.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/check.h"
#include "memory/buffer/block_access.h"
#include "memory/tiers/page_seals.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// Blocks side by side in the file that are being fetched, with their locks.
class FetchRun {
 public:
  FetchRun(const ObjectAccess& access, BlockNumber first, std::uint64_t size)
      : access_(access), first_(first), size_(size) {}
  ~FetchRun() { discard(); }
  FetchRun(const FetchRun&) = delete;
  FetchRun& operator=(const FetchRun&) = delete;

  unsigned count() const { return count_; }
  void add(LockedBlock block) {
    CAIRN_DCHECK(count_ < kFetchBlocksMax && block.descriptor().valid_pages() == 0);
    CAIRN_DCHECK(raw(block.descriptor().block_number()) == raw(first_) + count_);
    blocks_[count_++] = static_cast<LockedBlock&&>(block);
  }

  // One read for all of them; what the store has not got reads as zeros. 0 or -errno.
  int read() {
    std::array<iovec, kFetchBlocksMax> parts;
    for (unsigned at = 0; at < count_; ++at) parts[at] = {bytes(at), bytes_of(at)};
    const ssize_t got =
        access_.backing.read_parts(offset_of(first_), std::span(parts.data(), count_));
    if (got < 0) return static_cast<int>(got);
    auto left = static_cast<std::size_t>(got);
    for (unsigned at = 0; at < count_; ++at) {
      const std::size_t had = std::min(left, bytes_of(at));
      left -= had;
      if (had < bytes_of(at)) zero_shared(bytes(at) + had, bytes_of(at) - had);
    }
    return 0;
  }

  // From here on they are as good as blocks that a program has read, but for the mark.
  void release(std::optional<std::uint8_t> predictor) {
    const NodeMemory& memory = *access_.actor.memory;
    for (unsigned at = 0; at < count_; ++at) {
      blocks_[at].fill(pages_touched(0, bytes_of(at)));
      seal_filled(memory, blocks_[at], pages_touched(0, bytes_of(at)));
      if (predictor) {
        blocks_[at].set_unread(*predictor);
        memory.fetches().note_fetched(*predictor, blocks_[at].descriptor().bucket_bytes());
      }
      memory.journal().note(MoveJournal::kStore, raw(TierId::kMemory),
                            predictor ? PlacementReason::kFetched : PlacementReason::kRead,
                            bytes_of(at));
      blocks_[at].unlock();
    }
    count_ = 0;
  }

  void discard() {
    for (unsigned at = 0; at < count_; ++at) discard_unfilled(access_.actor, blocks_[at]);
    count_ = 0;
  }

 private:
  std::byte* bytes(unsigned at) const { return access_.actor.memory->bytes(blocks_[at].bucket()); }
  // Whole pages: what follows the end of the file in the last one is zero.
  std::size_t bytes_of(unsigned at) const {
    const std::uint64_t start = offset_of(first_) + std::uint64_t{at} * kBlockBytes;
    CAIRN_DCHECK(start < size_);
    const std::uint64_t pages = (size_ - start + kPageBytes - 1) / kPageBytes * kPageBytes;
    return static_cast<std::size_t>(std::min<std::uint64_t>(pages, kBlockBytes));
  }

  const ObjectAccess& access_;
  const BlockNumber first_;
  const std::uint64_t size_;
  std::array<LockedBlock, kFetchBlocksMax> blocks_;
  unsigned count_ = 0;
};

}  // namespace

Fetched fetch_ahead(const ObjectAccess& access, BlockNumber first, unsigned count,
                    std::optional<std::uint8_t> predictor) {
  Fetched result;
  const Object& object = access.object();
  const std::uint32_t shape = object.shape_sequence.load(std::memory_order_seq_cst);
  if ((shape & 1) != 0 || object.through.load(std::memory_order_acquire) != 0) return result;
  // Behind the store's end are zeros, which cost nothing to make when they are wanted.
  const std::uint64_t size = std::min(object.size.load(std::memory_order_acquire),
                                      object.store_size.load(std::memory_order_acquire));
  FetchRun run(access, first, size);
  const NodeMemory& memory = *access.actor.memory;
  while (run.count() < count) {
    const auto number = static_cast<BlockNumber>(raw(first) + run.count());
    if (offset_of(number) >= size) break;
    const auto length =
        static_cast<std::size_t>(std::min<std::uint64_t>(size - offset_of(number), kBlockBytes));
    if (memory.part_of(object.handling(), number).never_buffered) break;
    LockedBlock block = place_in_memory(
        access, {.number = number,
                 .end = length,
                 .reason = predictor ? PlacementReason::kFetched : PlacementReason::kRead,
                 .blocks_wanted = count - run.count()});
    if (!block) {
      result.has_no_room = memory.directory().find(access.index, number) == BucketIndex::kNone;
      break;
    }
    run.add(static_cast<LockedBlock&&>(block));
  }
  if (run.count() == 0) return result;
  result.error = run.read();
  if (result.error < 0) return result;
  // A truncation that looked for blocks before ours were there has not seen them.
  if (object.shape_sequence.load(std::memory_order_seq_cst) != shape) return result;
  result.blocks = run.count();
  run.release(predictor);
  return result;
}

Fetched fetch_missing(const ObjectAccess& access, BlockNumber first, unsigned count,
                      std::optional<std::uint8_t> predictor) {
  CAIRN_DCHECK(count != 0 && count <= kFetchBlocksMax);
  Fetched all;
  while (all.blocks < count) {
    const auto next = static_cast<BlockNumber>(raw(first) + all.blocks);
    const Fetched part = fetch_ahead(access, next, count - all.blocks, predictor);
    all.error = part.error;
    all.has_no_room = part.has_no_room;
    all.blocks += part.blocks;
    if (part.error < 0 || part.has_no_room) break;
    // It ends at a block that somebody else has, or that nobody can fetch.
    if (part.blocks == 0) ++all.blocks;
  }
  CAIRN_DCHECK(all.blocks <= count);
  return all;
}

}  // namespace cairn
