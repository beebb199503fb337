// SPDX-License-Identifier: Apache-2.0
// One thread at work on the node's memory: under which owner it takes locks, its stock of free
// buckets, where it counts.
//
// Thread safety: none; one thread each. Ownership: borrows the NodeMemory and the counters, which
// must outlive it; call drop_leases() before the thread ends (a killed thread's leases are
// reclaimed by the service).
#pragma once

#include "memory/arena/counters.h"
#include "memory/arena/owner.h"
#include "memory/pool/lease.h"
#include "memory/tiers/node_memory.h"
#include "memory/tiers/wait_sums.h"

namespace cairn {

// What a thread has last read of blocks in file tiers, in pieces: neighbours in the file that lie
// side by side.
struct BounceCopy {
  static constexpr unsigned kBlocksMax = 16;

  ObjectIndex object = ObjectIndex::kNone;
  BlockNumber number{};  // of the last piece
  BlockNumber first{};
  BucketIndex bucket{};                           // of the first
  unsigned count = 0;                             // 0: only a piece was read
  std::array<std::uint64_t, kBlocksMax> words{};  // of their descriptors: equal means unchanged

  bool has(ObjectIndex of, BlockNumber block) const {
    return object == of && raw(block) - raw(first) < count;
  }
};

struct Actor {
  const NodeMemory* memory = nullptr;
  Owner self;
  CounterShard* counters = nullptr;
  Lease leases[kTiersMax];
  // elements of placement plans taken; see memory/tiers/published_plan.h
  std::uint32_t plan_cursor = 0;
  // kBounceBlocks, page-aligned, for direct I/O on file tiers; made when first needed
  std::byte* bounce = nullptr;
  BounceCopy copy;          // of blocks, at the beginning of `bounce`
  std::uint32_t draws = 0;  // reads of file tiers that might have gone around them
  // The worst that a part of the call under way has met; the kinds are in that order.
  AccessKind met = AccessKind::kHit;
  WaitSums waits;  // that the service has not heard of yet

  static constexpr std::size_t kBounceBlocks = BounceCopy::kBlocksMax;
  // Requires that a file tier exists, in practice. Null when the process has no memory left.
  // The caller may write there.
  std::byte* bounce_blocks();
  const OwnerTable& owners() const { return memory->owners(); }
  // The process for which it works, when that is another one: the service fetches for readers.
  std::uint16_t works_for = 0;
  // The account charged for buckets that this thread takes: the process's run.
  AccountId account() const {
    const std::uint16_t slot = works_for == 0 ? self.slot() : works_for;
    return static_cast<AccountId>(memory->slot(slot).account.load(std::memory_order_relaxed));
  }
  Object& object(ObjectIndex index) const { return memory->objects().at(index); }
  void count(Counter counter, std::uint64_t amount) { counters->add(counter, amount); }
  void note_met(AccessKind kind) {
    if (kind < met) met = kind;
  }
  void drop_leases();
  static constexpr std::uint32_t kSampleEvery = 64;
  // True for one read hit in kSampleEvery: the one that pays for statistics (recency, frequency,
  // time). The counter of hits is the clock, so that a hit counts once and not twice. Not the
  // first: it takes longer than those that it would stand for.
  bool is_sampled() const {
    return counters->get(Counter::kReadHits) % kSampleEvery == kSampleEvery / 2;
  }
  // The same of a short write whose bytes go to a block in RAM at once. The clock is that of all
  // writes, so the interval is a prime: a program's own rhythm does not keep step with it.
  static constexpr std::uint32_t kSampleWritesEvery = 61;
  bool is_sampled_write() const {
    return counters->get(Counter::kWrites) % kSampleWritesEvery == kSampleWritesEvery / 2;
  }
  // The name under which it takes the locks of blocks.
  BlockWorker worker() const { return BlockWorker{&memory->catalog(), self}; }
};

}  // namespace cairn
