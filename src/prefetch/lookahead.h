// SPDX-License-Identifier: Apache-2.0
// How far ahead of its reader a stream is read, by what became of what was fetched (AMP: Gill,
// Bathen, "AMP: Adaptive multi-stream prefetching in a shared cache", FAST 2007, section 4).
//
// Two numbers: the degree is how many blocks are asked for at once, the distance how many are still
// ahead of the reader when that is done. A fetch that came late raises the distance; a degree that
// was used in full raises itself; a block that was evicted before it was used lowers both.
//
// Bounds: degree and distance together are within [kBlocksMin, kBlocksMax], 16 MiB at most.
// Thread safety: none.
#pragma once

#include <cstdint>

namespace cairn {

class Lookahead {
 public:
  static constexpr std::uint32_t kBlocksMin = 2;
  static constexpr std::uint32_t kBlocksMax = 256;

  // A read waited for blocks that were on their way: this many are missing in the distance.
  void on_late(std::uint32_t blocks = 1);
  // A block was there when it was read.
  void on_used();
  // A block left the buffer, and nobody had read it.
  void on_evicted_unused();

  // What may be ahead of the reader at most. `factor`: StreamHints::ahead_factor().
  std::uint32_t blocks_ahead(unsigned factor = 1) const;
  // The same in reads of so many blocks; at least one. Requires: blocks_per_read > 0.
  std::uint32_t runs_ahead(std::uint32_t blocks_per_read, unsigned factor = 1) const;
  // Whether it is time to fetch up to blocks_ahead(), with so many left.
  bool wants_more(std::uint32_t blocks_left, unsigned factor = 1) const;

  std::uint32_t degree_blocks() const { return degree_blocks_; }
  std::uint32_t distance_blocks() const { return distance_blocks_; }

 private:
  static constexpr std::uint32_t kPartMax = kBlocksMax / 2;
  static constexpr std::uint32_t kPartFirst = 4;

  std::uint32_t degree_blocks_ = kPartFirst;
  std::uint32_t distance_blocks_ = kPartFirst;
  std::uint32_t used_in_a_row_ = 0;
};

}  // namespace cairn
