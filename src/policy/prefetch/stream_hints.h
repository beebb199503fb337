// SPDX-License-Identifier: Apache-2.0
// How the program itself says that it will read a stream: a declared order, and posix_fadvise().
//
// WILLNEED ranges are handed out once, beside all prediction. SEQUENTIAL doubles how much is read
// ahead and needs no second read to begin. RANDOM silences all predictors but the declared order.
//
// Bounds: kRangesMax ranges; the oldest gives way. Thread safety: none. Ownership: shares the
// order.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "policy/prefetch/predictor.h"

namespace cairn {

using DeclaredOrder = std::shared_ptr<const std::vector<BlockRun>>;

enum class AccessAdvice : std::uint8_t { kNormal, kSequential, kRandom };

class StreamHints {
 public:
  static constexpr unsigned kRangesMax = 16;

  // The runs in the order in which they will be read. Replaces the order before; null: none.
  void declare(DeclaredOrder order);
  const DeclaredOrder& order() const { return order_; }
  // The stream does not keep to the order; it is not followed any more.
  void refute_order() { is_order_refuted_ = true; }
  bool is_order_refuted() const { return is_order_refuted_; }

  void advise(AccessAdvice advice) { advice_ = advice; }
  AccessAdvice advice() const { return advice_; }
  // The factor of the distance that is read ahead.
  unsigned ahead_factor() const { return advice_ == AccessAdvice::kSequential ? 2 : 1; }

  void will_need(BlockRun range);
  // Ranges that are wanted and were not taken yet, cut so that they are `blocks_max` together at
  // most. Returns: how many of `ranges` are filled.
  std::size_t take_wanted(std::span<BlockRun> ranges, std::uint32_t blocks_max);
  // A read of `run`: its blocks need not be fetched any more.
  void observe(BlockRun run);

 private:
  DeclaredOrder order_;
  bool is_order_refuted_ = false;
  AccessAdvice advice_ = AccessAdvice::kNormal;
  std::array<BlockRun, kRangesMax> wanted_{};
  unsigned wanted_count_ = 0;
};

}  // namespace cairn
