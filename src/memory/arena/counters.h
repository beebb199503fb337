// SPDX-License-Identifier: Apache-2.0
// What a client counts, in memory that the counting thread owns (rule 1: statistics cost the hit
// path no shared line).
//
// Thread safety: a shard is written by the threads that picked it and read by the service. Threads
// that share a shard may lose an increment; correctness never depends on these numbers.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

enum class Counter : std::uint8_t {
  kReads,  // read calls that were more than one plain hit
  kReadBytes,
  kReadHits,       // read calls that were one plain hit
  kPlainHitBytes,  // their bytes; the other counters of reads do not have them
  kHitBytesMemory,
  kHitBytesTier1,  // bytes served from file tiers: hit_bytes_counter() says which is whose
  kHitBytesTierLast = kHitBytesTier1 + kTiersMax - 2,
  kAroundBytes,  // of the misses: what a saturated file tier had as well
  kMissBytes,    // bytes that no tier had: kReadBytes is the sum of hits and misses
  kWrites,
  kWriteBytes,
  kWriteThroughBytes,  // bytes that went to the backing store at once
  kFlushedBytes,
  kEvictedBlocks,
  kPromotedBlocks,
  kDemotedBlocks,
  kIoCycles,  // time inside data calls (cycle_clock.h); plain hits and short writes are sampled
  kOpens,
  kArrayBytes,  // of the hits in RAM: chunks of arrays, unpacked or gathered
  kCount
};
inline constexpr unsigned kCounters = static_cast<unsigned>(Counter::kCount);

constexpr Counter hit_bytes_counter(TierId tier) {
  return tier == TierId::kMemory
             ? Counter::kHitBytesMemory
             : static_cast<Counter>(static_cast<unsigned>(Counter::kHitBytesTier1) + raw(tier) - 1);
}

static_assert(hit_bytes_counter(static_cast<TierId>(kTiersMax - 1)) == Counter::kHitBytesTierLast);

struct alignas(64) CounterShard {
  std::atomic<std::uint64_t> values[24];
  // The object whose bytes the thread is changing, until the object's times say so; 0: none. Not
  // reliable where threads share the shard (memory/buffer/write_under_way.h).
  std::atomic<std::uint32_t> writing;

  void add(Counter counter, std::uint64_t amount) {
    // Not a locked instruction: the shard is the thread's own.
    std::atomic<std::uint64_t>& value = values[static_cast<unsigned>(counter)];
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    // One that compilers do not make of the two below, and that no signal handler comes between.
    __asm__("addq %1, %0" : "+m"(value) : "er"(amount) : "cc");
#else
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
#endif
  }
  std::uint64_t get(Counter counter) const {
    return values[static_cast<unsigned>(counter)].load(std::memory_order_relaxed);
  }
};
static_assert(kCounters <= 24 && sizeof(CounterShard) == 4 * 64, "four cache lines a shard");

}  // namespace cairn
