// SPDX-License-Identifier: Apache-2.0
// The hit: a read that lies in one block of the RAM tier. No lock, no system call, nothing shared
// is written.
//
// Random reads miss the processor's caches, and then the number of instructions decides in an
// unexpected way: two reads overlap their cache misses only when the instructions from one to
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

// The bytes of a block that a read copies, and their destination.
struct BlockRead {
  ObjectIndex object;
  std::uint64_t number;  // may be one that no block has
  std::size_t begin;     // inside the block
  std::size_t length;
  void* out;
};

// A read call's bytes, and where they go.
struct ReadRequest {
  std::uint64_t offset;
  void* out;
  std::size_t length;
};

// Copies a part of a block out of the RAM tier. False, with rubbish in `read.out`, when anything at
// all is not as it should be: the block is elsewhere, is being changed, or lacks the bytes, or
// `read.out` is not all there.
[[gnu::always_inline]] inline bool copy_resident(const NodeMemory& memory, BucketIndex bucket,
                                                 const BlockRead& read) {
  const std::byte* bytes = memory.bytes_if_in_memory(bucket);
  if (__builtin_expect(bytes == nullptr, 0)) return false;
  const BlockDescriptor& descriptor = memory.block(bucket);
  const std::uint64_t before = descriptor.word(std::memory_order_acquire);
  if (__builtin_expect(!BlockDescriptor::is_at_rest(before), 0)) return false;
  if (__builtin_expect(!descriptor.holds(read.object, read.number), 0)) return false;
  const std::uint16_t valid = descriptor.valid_pages();
  if (__builtin_expect(valid != kAllPages, 0)) {
    const std::uint16_t needed = pages_touched(read.begin, read.begin + read.length);
    if ((valid & needed) != needed) return false;
  }
  const std::size_t missing = copy_from_shared(read.out, bytes + read.begin, read.length);
  end_shared_copy();
  const std::uint64_t after = descriptor.word();
  return (((before ^ after) & ~BlockDescriptor::kWaiters) | missing) == 0;
}

// Reads the bytes of `request` if that is a plain hit, and counts it. False when it is not, or when
// the call is a sample: then read_object() does the work. A read at the beginning of a block always
// is, so that sequential reads note the recency of each block once. `object` is the record of
// `index`; `hint` may be null.
[[gnu::always_inline]] inline bool read_hit(Actor& actor, const Object& object, ObjectIndex index,
                                            const BucketHint* hint, const ReadRequest& request) {
  const std::uint64_t offset = request.offset;
  const std::size_t length = request.length;
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
  // No descriptor has the number of a place behind all blocks: copy_resident() compares all bits.
  const std::uint64_t wide_number = offset >> kBlockShift;
  const auto number = static_cast<BlockNumber>(wide_number);
  BucketIndex bucket = hint == nullptr ? BucketIndex::kNone : hint->guess(number);
  if (bucket == BucketIndex::kNone) bucket = memory.directory().guess(index, number);
  if (__builtin_expect(
          !copy_resident(memory, bucket, {index, wide_number, begin, length, request.out}), 0)) {
    return false;
  }
  CounterShard& counters = *actor.counters;
  counters.add(Counter::kReadHits, 1);
  counters.add(Counter::kPlainHitBytes, length);
  return true;
}

}  // namespace cairn
