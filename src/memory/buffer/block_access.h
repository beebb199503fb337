// SPDX-License-Identifier: Apache-2.0
// Getting at one block for a data call: find it, give it a bucket, fill what is missing, move it
// up, take it away.
//
// Thread safety: any thread; lock order as in memory/catalog/object.h.
#pragma once

#include <errno.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "memory/buffer/object_io.h"
#include "memory/catalog/block_life.h"

namespace cairn {

// Locks the block if it is resident in any tier.
LockedBlock lock_resident(Actor& actor, ObjectIndex object, BlockNumber number);

enum class Promotion : std::uint8_t { kAlways, kIfWorthwhile };
// The block that a data call wants, and for what.
struct BlockRequest {
  // A value of `blocks_wanted`: the call writes less than a block.
  static constexpr unsigned kOnlyAPiece = 0;

  BlockNumber number{};
  std::size_t end = kBlockBytes;  // its bucket holds at least so many bytes
  PlacementReason reason = PlacementReason::kNone;
  unsigned blocks_wanted = 1;  // as many as the call goes on for
  Promotion promotion = Promotion::kAlways;
};

// Locks the block, giving it a bucket if it has none: in the tier that the plan names, or else
// where there is room. Empty when no bucket or directory slot is free, or the object went through:
// the caller uses the store. A block of a file tier comes as it is when the file belongs there, the
// RAM tier has no room for it, or it is not worth the room.
LockedBlock lock_or_place(const ObjectAccess& access, const BlockRequest& request);

// The same for a block that is nowhere yet, all of whose bytes are to be written. Empty when it is
// resident, or cannot be.
LockedBlock place_fresh(const ObjectAccess& access, BlockNumber number, unsigned blocks_wanted);

// A bucket in RAM for a block that is nowhere yet, locked and published, that holds at least the
// bytes before request.end. Empty when it is resident somewhere or RAM has no room, or when it is
// not fetched ahead and has its home elsewhere; nobody is waited for.
LockedBlock place_in_memory(const ObjectAccess& access, const BlockRequest& request);

// Takes the mark of a block that was fetched ahead, whose first use this is. Requires: the lock.
void note_first_use(Actor& actor, const LockedBlock& block);

void tell_wanted_access(const ObjectAccess& access, std::uint64_t offset, std::size_t length,
                        std::uint64_t started);
// Lets the service learn from a program's call, which met Actor::met at the worst, if it wants to
// know of such calls: `level` is theirs. `started`: 0 for now.
inline void tell_access(const ObjectAccess& access, std::uint64_t offset, std::size_t length,
                        std::uint64_t started, EventLevel level) {
  if (__builtin_expect(access.actor.memory->event_board().wants(level), 0))
    tell_wanted_access(access, offset, length, started);
}

// Adds up what a call of a program has waited for and written, if the service wants to know of it.
void note_wanted_wait(const ObjectAccess& access, std::uint64_t written, std::uint64_t cycles);
inline void note_wait(const ObjectAccess& access, std::uint64_t written, std::uint64_t cycles) {
  if (__builtin_expect(access.actor.memory->event_board().wants(EventLevel::kWaits), 0))
    note_wanted_wait(access, written, cycles);
}

// Whether a block of a file tier is used where it is, as lock_or_place() would decide.
bool stays_in_file_tier(const ObjectAccess& access, BlockNumber number, BucketIndex bucket,
                        Promotion promotion);

// The bytes of the store, and zeros where it has none. Behind its end no read is made, because a
// read may have to open it first. Returns how many bytes it had, or -errno.
ssize_t read_store(const ObjectAccess& access, std::uint64_t offset, std::byte* out,
                   std::size_t length);

// Makes all of `pages` valid, reading from the store what it has and zeroing the rest. 0 or -errno.
// Requires: the lock, in memory.
int fill_missing_pages(const ObjectAccess& access, LockedBlock& block, BlockNumber number,
                       std::uint16_t pages);
inline int fill_pages(const ObjectAccess& access, LockedBlock& block, BlockNumber number,
                      std::uint16_t pages) {
  const std::uint16_t valid = block.descriptor().valid_pages();
  if (__builtin_expect((pages & ~valid) == 0, 1)) return 0;
  return fill_missing_pages(access, block, number, pages);
}

// The same for a caller that changes no byte of the block before the lock ends: the pages are
// sealed (memory/tiers/page_seals.h).
int fill_and_seal(const ObjectAccess& access, LockedBlock& block, BlockNumber number,
                  std::uint16_t pages);

// The same for a fresh block of a file tier: all of it, from the store. Requires: the lock, no page
// valid.
int fill_in_file_tier(const ObjectAccess& access, LockedBlock& block, BlockNumber number);

// Whether the result of reading or writing a bucket says that its tier has failed: the error is
// neither of the program's memory nor of this process's.
inline bool is_failure_of_tier(ssize_t result) {
  return result < 0 && result != -EFAULT && result != -ENOMEM;
}

// The tier does not give the block's bytes: the pages that the store has leave the block. Returns
// whether nothing of the block is left. Nothing happens while somebody has claimed it.
bool give_up_clean_pages(Actor& actor, LockedBlock& block);

// Takes the block out of its tier; dirty pages are lost.
void discard_block(Actor& actor, UnclaimedBlock block, PlacementReason reason);
// The same for a block that has no bytes, so that no move is counted. It stays while somebody has
// claimed it.
void discard_unfilled(Actor& actor, LockedBlock& block);

// Recency and frequency, for the policies. Not on every plain hit, because a store to a line that
// others read costs 10 ns and more: one that is sampled stands for `weight` of them.
inline void note_access(const NodeMemory& memory, BucketIndex bucket, std::uint32_t weight = 1) {
  OrganizerBoard& organizer = memory.organizer_board();
  if (__builtin_expect(organizer.rank_wanted.load(std::memory_order_relaxed) != 0, 0) &&
      organizer.rank_wanted.exchange(0) != 0)
    organizer.bell.ring();
  memory.block(bucket).note_use(monotonic_coarse_ms(), weight);
}

// Calls visit(BlockNumber) for every block of [first, end) that is resident all the while, and for
// some of those that come or go.
template <typename Visit>
void for_each_resident(Actor& actor, ObjectIndex object, std::uint32_t first, std::uint64_t end,
                       Visit&& visit) {
  const NodeMemory& memory = *actor.memory;
  const Object& record = actor.object(object);
  // A file of few blocks costs as many looks, however large the tiers are.
  end = std::min(end, record.numbers_end());
  if (first >= end) return;
  if (end - first <= 4 * std::uint64_t{memory.bucket_count()}) {
    for (std::uint64_t number = first; number < end; ++number) {
      if (record.blocks.load(std::memory_order_acquire) == 0) return;
      const auto block = static_cast<BlockNumber>(number);
      if (memory.directory().find(object, block) != BucketIndex::kNone) visit(block);
    }
    return;
  }
  memory.directory().for_each_block([&](ObjectIndex owner, BlockNumber number) {
    if (owner == object && raw(number) >= first && raw(number) < end) visit(number);
  });
}

}  // namespace cairn
