// SPDX-License-Identifier: Apache-2.0
// What the gatherer says and hears of the grids of its arrays.
#include "memory/tiers/array_board.h"
#include "service/gathering/chunk_gatherer.h"

namespace cairn::node {

// Requires: the lock.
void ChunkGatherer::publish_grid(const Chunk& read, const ArrayWatch& watch) const {
  const arrays::ChunkShape& shape = watch.grid()->shape();
  GridNumbers numbers;
  if (shape.chunk.size() > GridNumbers::kDimensionsMax) return;
  numbers.dimensions = static_cast<std::uint32_t>(shape.chunk.size());
  for (std::size_t at = 0; at < shape.chunk.size(); ++at) {
    numbers.rows[0][at] = shape.chunk[at];
    numbers.rows[1][at] = shape.ghost.before[at];
    numbers.rows[2][at] = shape.ghost.behind[at];
    numbers.rows[3][at] = shape.origin[at];
  }
  with_.memory.array_board().publish({read.file, arrays::array_name(read.array)}, numbers);
}

// The service before this one has learned it, which was killed, or this one of an older version of
// the file. Programs that read other boxes now have these learned, as with a hint.
std::optional<arrays::ChunkGrid> ChunkGatherer::published_grid(
    ObjectIndex file, const arrays::FileArray& array) const {
  GridNumbers numbers;
  const std::size_t dimensions = array.shape.size();
  const bool is_known =
      with_.memory.array_board().find({file, arrays::array_name(array)}, &numbers);
  if (!is_known || numbers.dimensions != dimensions) return std::nullopt;
  arrays::ChunkShape shape = arrays::ChunkShape::plain(array.shape);
  for (std::size_t at = 0; at < dimensions; ++at) {
    shape.chunk[at] = numbers.rows[0][at];
    shape.ghost.before[at] = numbers.rows[1][at];
    shape.ghost.behind[at] = numbers.rows[2][at];
    shape.origin[at] = numbers.rows[3][at];
  }
  auto grid = arrays::ChunkGrid::of(array.shape, shape);
  if (!grid) return std::nullopt;
  return *grid;
}

void ChunkGatherer::expect(ObjectIndex file, const arrays::FileArray& array,
                           const arrays::ChunkGrid& grid) {
  if (with_.budget_percent == 0) return;
  const FileVersion version = FileVersion::of(with_.memory.objects().at(file));
  const std::lock_guard lock(mutex_);
  watch_of(file, version, array).expect(grid);
}

std::vector<arrays::ChunkGrid> ChunkGatherer::grids_of(ObjectIndex file,
                                                       const arrays::FileArray& array) const {
  const std::lock_guard lock(mutex_);
  for (const Watched& each : watched_) {
    if (each.file != file || each.watch.array() != array || each.watch.grid() == nullptr) continue;
    std::vector<arrays::ChunkGrid> grids{*each.watch.grid()};
    const auto& earlier = each.watch.earlier_grids();
    grids.insert(grids.end(), earlier.begin(), earlier.end());
    return grids;
  }
  return {};
}

}  // namespace cairn::node
