// SPDX-License-Identifier: Apache-2.0
#include "policy/prefetch/sequential.h"

#include <algorithm>
#include <cmath>

#include "policy/prefetch/adjoining.h"
#include "policy/prefetch/run_writer.h"

namespace cairn {
namespace {

constexpr float kReadMax = 1 << 20;

}  // namespace

void Sequential::observe(BlockRun run) {
  const bool continues = last_.count != 0 && goes_on_at(run, last_.end());
  const auto blocks = static_cast<float>(run.count);
  read_blocks_ = last_.count == 0 ? blocks : read_blocks_ + (blocks - read_blocks_) / 4;
  last_ = run;
  if (!continues) {
    steps_ = 0;
    window_ = 2;
    return;
  }
  if (steps_ < kStepsMin) ++steps_;
  window_ = std::min(2 * window_, kWindowMax);
}

std::size_t Sequential::predict(std::span<BlockRun> next) const {
  if (steps_ < kStepsMin) return 0;
  RunWriter writer(next.first(std::min<std::size_t>(next.size(), window_ / 2)));
  const auto blocks = static_cast<std::uint32_t>(std::min(std::ceil(read_blocks_), kReadMax));
  for (std::int64_t first = last_.end(); !writer.is_full(); first += blocks)
    writer.add(BlockRun{first, blocks});
  return writer.count();
}

}  // namespace cairn
