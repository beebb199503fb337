// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/lookahead.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {

void Lookahead::on_late(std::uint32_t blocks) { blocks_ += std::min(blocks, kBlocksMax - blocks_); }

void Lookahead::on_evicted_unused() {
  if (blocks_ > kBlocksMin) --blocks_;
}

std::uint32_t Lookahead::blocks_ahead(unsigned factor) const {
  return std::min(kBlocksMax, factor * blocks_);
}

std::uint32_t Lookahead::runs_ahead(std::uint32_t blocks_per_read, unsigned factor) const {
  CAIRN_CHECK(blocks_per_read > 0);
  return std::max(1U, blocks_ahead(factor) / blocks_per_read);
}

void CommonLookahead::learn(const Lookahead& stream) {
  blocks_ += kRate * (static_cast<float>(stream.blocks_ahead()) - blocks_);
}

void CommonLookahead::restore(float blocks) {
  const bool is_number = blocks >= Lookahead::kBlocksMin;
  blocks_ = is_number ? std::min(blocks, static_cast<float>(Lookahead::kBlocksMax))
                      : static_cast<float>(Lookahead::kBlocksFirst);
}

}  // namespace cairn
