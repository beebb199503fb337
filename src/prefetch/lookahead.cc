// SPDX-License-Identifier: Apache-2.0
#include "prefetch/lookahead.h"

#include <algorithm>

namespace cairn {

void Lookahead::on_late(std::uint32_t blocks) {
  distance_blocks_ += std::min(blocks, kPartMax - distance_blocks_);
}

void Lookahead::on_used() {
  if (++used_in_a_row_ < degree_blocks_) return;
  used_in_a_row_ = 0;
  if (degree_blocks_ < kPartMax) ++degree_blocks_;
}

void Lookahead::on_evicted_unused() {
  used_in_a_row_ = 0;
  if (degree_blocks_ > 1) --degree_blocks_;
  if (distance_blocks_ > 1) --distance_blocks_;
}

std::uint32_t Lookahead::blocks_ahead(unsigned factor) const {
  return std::min(kBlocksMax, factor * (degree_blocks_ + distance_blocks_));
}

std::uint32_t Lookahead::runs_ahead(std::uint32_t blocks_per_read, unsigned factor) const {
  return std::max(1U, blocks_ahead(factor) / blocks_per_read);
}

bool Lookahead::wants_more(std::uint32_t blocks_left, unsigned factor) const {
  return blocks_left <= std::min(kBlocksMax / 2, factor * distance_blocks_);
}

}  // namespace cairn
