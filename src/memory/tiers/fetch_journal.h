// SPDX-License-Identifier: Apache-2.0
// What was fetched ahead of its use, by which predictor, and what became of it: one line of
// counters for each, shared by all processes of a node.
//
//   fetched          read from the backing store, or brought up from a file tier, unasked
//   used             of that: asked for afterwards
//   late             of what was used: a program had to wait for it, as it was still on its way
//   evicted unused   of that: left before anybody asked
//   below            of what waits for its use: in file tiers, because it is wanted later
//
// Fetched bytes that are neither used nor evicted wait for their use: unused_bytes().
//
// Thread safety: any thread of any process. Ownership: the counters live in the control segment.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace cairn {

class FetchJournal {
 public:
  // Numbers of predictors; the names are the service's (policy/prefetch/predictors.h).
  static constexpr unsigned kPredictorsMax = 32;

  struct alignas(64) Line {
    std::atomic<std::uint64_t> fetched_bytes;
    std::atomic<std::uint64_t> used_bytes;
    std::atomic<std::uint64_t> late_bytes;
    std::atomic<std::uint64_t> evicted_unused_bytes;
    std::atomic<std::uint64_t> below_bytes;
  };
  static_assert(sizeof(Line) == 64, "predictors share no cache line");
  static_assert(kPredictorsMax <= 256, "a predictor is a byte in descriptors");
  static constexpr std::size_t kBytes = sizeof(Line) * kPredictorsMax;
  // The table in the control segment, as its map knows it.
  struct alignas(64) Bytes {
    std::byte bytes[kBytes];
  };

  FetchJournal() = default;
  explicit FetchJournal(void* lines) : lines_(static_cast<Line*>(lines)) {}

  Line& of(unsigned predictor) const { return lines_[predictor % kPredictorsMax]; }
  void note_fetched(unsigned predictor, std::uint64_t bytes) const {
    of(predictor).fetched_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void note_used(unsigned predictor, std::uint64_t bytes, bool was_late) const {
    of(predictor).used_bytes.fetch_add(bytes, std::memory_order_relaxed);
    if (was_late) of(predictor).late_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  void note_evicted_unused(unsigned predictor, std::uint64_t bytes) const {
    of(predictor).evicted_unused_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // What waits for its use has gone to a file tier.
  void note_sent_below(unsigned predictor, std::uint64_t bytes) const {
    of(predictor).below_bytes.fetch_add(bytes, std::memory_order_relaxed);
  }
  // It has come up from there, was used there, or does not wait any more.
  void note_left_below(unsigned predictor, std::uint64_t bytes) const {
    of(predictor).below_bytes.fetch_sub(bytes, std::memory_order_relaxed);
  }
  std::uint64_t below_bytes() const {
    std::uint64_t below = 0;
    for (unsigned predictor = 0; predictor < kPredictorsMax; ++predictor)
      below += lines_[predictor].below_bytes.load(std::memory_order_relaxed);
    return below;
  }
  // Bytes that wait for their use, in RAM or below: an estimate while the counters change.
  std::uint64_t unused_bytes() const {
    std::uint64_t fetched = 0;
    std::uint64_t gone = 0;
    for (unsigned predictor = 0; predictor < kPredictorsMax; ++predictor) {
      const Line& line = lines_[predictor];
      gone += line.used_bytes.load(std::memory_order_relaxed) +
              line.evicted_unused_bytes.load(std::memory_order_relaxed);
      fetched += line.fetched_bytes.load(std::memory_order_relaxed);
    }
    return fetched > gone ? fetched - gone : 0;
  }

 private:
  Line* lines_ = nullptr;
};

}  // namespace cairn
