// SPDX-License-Identifier: Apache-2.0
#include "memory/tiers/warmer_board.h"

namespace cairn {

void WarmerBoard::note_used(std::uint32_t past) {
  std::uint32_t seen = used_slabs.load(std::memory_order_relaxed);
  while (seen < past && !used_slabs.compare_exchange_weak(seen, past)) {
  }
  const bool is_well_ahead = warm_slabs.load(std::memory_order_relaxed) > past + kAheadSlabsMin / 2;
  if (seen < past && !is_well_ahead) bell.ring();
}

}  // namespace cairn
