// SPDX-License-Identifier: Apache-2.0
// Where the blocks of an open file probably are. A file that is written in one go lies in one run
// of buckets, so a block's bucket is its number plus a constant. That saves the look into the
// directory, whose cache miss would stand before that of the data.
//
// A guess is only ever a guess: the descriptor says whether the block is there. Files that lie
// scattered lose the trust after a few wrong guesses and are looked up in the directory.
//
// Thread safety: any thread; a torn mixture of two threads' lessons is one more wrong guess.
#pragma once

#include <atomic>

#include "base/ids.h"

namespace cairn {

class BucketHint {
 public:
  // kNone when there is nothing to go by.
  BucketIndex guess(BlockNumber number) const {
    if (trust_.load(std::memory_order_relaxed) < kTrusted) return BucketIndex::kNone;
    return static_cast<BucketIndex>(raw(number) + delta(number).load(std::memory_order_relaxed));
  }

  // The block was found in `bucket`. To be called after every wrong guess, and now and then.
  void learn(BlockNumber number, BucketIndex bucket) {
    if (bucket == BucketIndex::kNone) return;
    const std::uint32_t trust = trust_.load(std::memory_order_relaxed);
    const std::uint32_t seen = raw(bucket) - raw(number);
    if (delta(number).load(std::memory_order_relaxed) == seen) {
      if (trust < kTrustMax) trust_.store(trust + 1, std::memory_order_relaxed);
    } else {
      if (trust > 0) trust_.store(trust - 1, std::memory_order_relaxed);
      delta(number).store(seen, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr std::uint32_t kTrusted = 4;
  static constexpr std::uint32_t kTrustMax = 8;
  static constexpr unsigned kRegions = 16;
  static constexpr unsigned kRegionShift = 10;  // blocks: 64 MiB

  std::atomic<std::uint32_t>& delta(BlockNumber number) {
    return deltas_[raw(number) >> kRegionShift & (kRegions - 1)];
  }
  const std::atomic<std::uint32_t>& delta(BlockNumber number) const {
    return deltas_[raw(number) >> kRegionShift & (kRegions - 1)];
  }

  std::atomic<std::uint32_t> trust_{0};
  std::atomic<std::uint32_t> deltas_[kRegions] = {};
};

}  // namespace cairn
