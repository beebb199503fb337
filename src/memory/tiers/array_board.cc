// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/array_board.h"

#include <algorithm>

#include "base/check.h"
#include "base/fence.h"

namespace cairn {

ArrayBoard::Entry& ArrayBoard::place_for(const ArrayName& name) {
  for (Entry& entry : entries_) {
    if (entry.sequence.load(std::memory_order_relaxed) == 0 || entry.is_of(name)) return entry;
  }
  return entries_[victim_.fetch_add(1, std::memory_order_relaxed) % kGridsMax];
}

void ArrayBoard::publish(const ArrayName& name, const GridNumbers& grid) {
  CAIRN_CHECK(grid.dimensions <= GridNumbers::kDimensionsMax);
  Entry& entry = place_for(name);
  // A service that died here has left it odd.
  const std::uint32_t odd = entry.sequence.load(std::memory_order_relaxed) | 1;
  entry.sequence.store(odd, std::memory_order_relaxed);
  fence(std::memory_order_release);
  entry.file.store(raw(name.file), std::memory_order_relaxed);
  for (unsigned at = 0; at < name.words.size(); ++at)
    entry.words[at].store(name.words[at], std::memory_order_relaxed);
  entry.dimensions.store(grid.dimensions, std::memory_order_relaxed);
  for (unsigned row = 0; row < grid.rows.size(); ++row) {
    for (unsigned at = 0; at < grid.dimensions; ++at)
      entry.rows[row][at].store(grid.rows[row][at], std::memory_order_relaxed);
  }
  entry.sequence.store(odd + 1 == 0 ? 2 : odd + 1, std::memory_order_release);
}

bool ArrayBoard::find(const ArrayName& name, GridNumbers* grid) const {
  for (const Entry& entry : entries_) {
    const std::uint32_t sequence = entry.sequence.load(std::memory_order_acquire);
    if (sequence == 0) return false;
    if (sequence % 2 != 0 || !entry.is_of(name)) continue;
    grid->dimensions = std::min(entry.dimensions.load(std::memory_order_relaxed),
                                std::uint32_t{GridNumbers::kDimensionsMax});
    for (unsigned row = 0; row < grid->rows.size(); ++row) {
      for (unsigned at = 0; at < grid->dimensions; ++at)
        grid->rows[row][at] = entry.rows[row][at].load(std::memory_order_relaxed);
    }
    fence(std::memory_order_acquire);
    return entry.is_of(name) && entry.sequence.load(std::memory_order_relaxed) == sequence;
  }
  return false;
}

}  // namespace cairn
