// SPDX-License-Identifier: Apache-2.0
// What the gatherer says and hears of the grids of its arrays.
#include "service/gathering/chunk_gatherer.h"

namespace cairn::node {

void ChunkGatherer::expect(ObjectIndex file, const arrays::FileArray& array,
                           const arrays::ChunkGrid& grid) {
  if (with_.budget_percent == 0) return;
  const FileVersion version = FileVersion::of(with_.memory.objects().at(file));
  const std::lock_guard lock(mutex_);
  watch_of(file, version, array).expect(grid);
}

std::optional<arrays::ChunkGrid> ChunkGatherer::grid_of(ObjectIndex file,
                                                        const arrays::FileArray& array) const {
  const std::lock_guard lock(mutex_);
  for (const Watched& each : watched_) {
    if (each.file != file || each.watch.array() != array || each.watch.grid() == nullptr) continue;
    return *each.watch.grid();
  }
  return std::nullopt;
}

}  // namespace cairn::node
