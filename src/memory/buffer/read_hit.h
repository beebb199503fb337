// SPDX-License-Identifier: Apache-2.0
// The hit: a read that lies in one block of the RAM tier. No lock, no system call, nothing shared
// is written.
//
// What is read at random misses the processor's caches, and then the number of instructions decides
// in an unexpected way: two reads overlap their cache misses only when the instructions from one to
// the next fit the reorder buffer (256 to 512 entries). At 250 instructions a call a 64-byte read
// of a gigabyte takes twice as long as at 150. So everything that a plain hit does not
// need is elsewhere (read_path.cc), and what is here is inlined into the hook.
//
// Thread safety: any thread. Source of the protocol: sequence locks, H.-J. Boehm, "Can seqlocks get
// along with programming language memory models?", MSPC 2012.
#pragma once

#include "memory/buffer/bucket_hint.h"
#include "memory/tiers/actor.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {

// Copies a part of a block out of the RAM tier. False, with rubbish in `out`, when anything at all
// is not as it should be: the block is elsewhere, is being changed, or lacks the bytes, or `out` is
// not all there. `number` may be one that no block has.
[[gnu::always_inline]] inline bool copy_resident(const NodeMemory& memory, BucketIndex bucket,
                                                 ObjectIndex object, std::uint64_t number,
                                                 std::size_t begin, std::size_t length, void* out) {
  const std::byte* bytes = memory.bytes_if_in_memory(bucket);
  if (__builtin_expect(bytes == nullptr, 0)) return false;
  const BlockDescriptor& descriptor = memory.block(bucket);
  const std::uint64_t before = descriptor.word(std::memory_order_acquire);
  if (__builtin_expect(!BlockDescriptor::is_at_rest(before), 0)) return false;
  if (__builtin_expect(!descriptor.holds(object, number), 0)) return false;
  const std::uint16_t valid = descriptor.valid_pages();
  if (__builtin_expect(valid != kAllPages, 0)) {
    const std::uint16_t needed = pages_touched(begin, begin + length);
    if ((valid & needed) != needed) return false;
  }
  const std::size_t missing = copy_from_shared(out, bytes + begin, length);
  end_shared_copy();
  const std::uint64_t after = descriptor.word();
  return (((before ^ after) & ~BlockDescriptor::kWaiters) | missing) == 0;
}

// Reads `length` bytes at `offset` if that is a plain hit, and counts it. False when it is not, or
// when it is to be sampled: then read_object() does the work. Whoever reads in order is sampled
// where a block begins, so that each block's recency is noted once. `object` is the record of
// `index`; `hint` may be null.
[[gnu::always_inline]] inline bool read_hit(Actor& actor, const Object& object, ObjectIndex index,
                                            const BucketHint* hint, std::uint64_t offset, void* out,
                                            std::size_t length) {
  if (__builtin_expect(actor.is_sampled(), 0)) return false;
  const std::size_t begin = offset & (kBlockBytes - 1);
  if (__builtin_expect(begin == 0, 0)) return false;
  // One comparison for a length of zero, of more than a block, and past the block's end.
  if (__builtin_expect(length - 1 >= kBlockBytes - begin, 0)) return false;
  const NodeMemory& memory = *actor.memory;
  if (__builtin_expect(object.through.load(std::memory_order_acquire) != 0, 0)) return false;
  // The sum is too small for a negative offset alone, and that is behind all blocks.
  if (__builtin_expect(offset + length > object.size.load(std::memory_order_acquire), 0))
    return false;
  // Of what lies behind all blocks no descriptor has the number: copy_resident() compares all bits.
  const std::uint64_t wide_number = offset >> kBlockShift;
  const auto number = static_cast<BlockNumber>(wide_number);
  BucketIndex bucket = hint == nullptr ? BucketIndex::kNone : hint->guess(number);
  if (bucket == BucketIndex::kNone) bucket = memory.directory().guess(index, number);
  if (__builtin_expect(!copy_resident(memory, bucket, index, wide_number, begin, length, out), 0)) {
    return false;
  }
  actor.count(Counter::kReadHits, 1);
  actor.count(Counter::kPlainHitBytes, length);
  return true;
}

}  // namespace cairn
