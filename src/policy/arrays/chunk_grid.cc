// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/chunk_grid.h"

#include <algorithm>
#include <string>

#include "base/check.h"

namespace cairn::arrays {

namespace {

Status wrong(const std::string& what, std::size_t dimension, const std::string& why) {
  return {StatusCode::kInvalid, what + " in dimension " + std::to_string(dimension) + ": " + why};
}

Status check_dimension(const Coordinates& array, const ChunkShape& shape, std::size_t at) {
  const std::uint64_t chunk = shape.chunk[at];
  if (chunk == 0) return wrong("chunk of 0 cells", at, "give it at least 1");
  if (chunk > array[at]) {
    return wrong("chunk of " + std::to_string(chunk) + " cells", at,
                 "the array has " + std::to_string(array[at]));
  }
  const std::uint64_t widest = std::max(shape.ghost.before[at], shape.ghost.behind[at]);
  if (widest > chunk) {
    return wrong("ghost zone of " + std::to_string(widest) + " cells", at,
                 "it is wider than a chunk, which has " + std::to_string(chunk));
  }
  if (shape.origin[at] >= array[at]) {
    return wrong("origin " + std::to_string(shape.origin[at]), at,
                 "the array has " + std::to_string(array[at]) + " cells");
  }
  return Status::ok();
}

}  // namespace

ChunkShape ChunkShape::plain(const Coordinates& chunk) {
  return {chunk, GhostWidth::none(chunk.size()), Coordinates(chunk.size(), 0)};
}

ChunkGrid::ChunkGrid(const Coordinates& array, const ChunkShape& shape)
    : array_(array), shape_(shape), places_(array.size(), 1) {
  for (std::size_t at = 0; at < array.size(); ++at) {
    const std::uint64_t chunk = shape.chunk[at];
    places_[at] = (array[at] - 1) / chunk + 1;
    // The first and the last one are cut where the origin is not at a multiple.
    const std::uint64_t last = chunk - 1 - (array[at] - 1) % chunk;
    if (cut_away(at) > last) ++places_[at];
  }
}

Result<ChunkGrid> ChunkGrid::of(const Coordinates& array, const ChunkShape& shape) {
  const std::size_t dimensions = array.size();
  const bool fits = shape.chunk.size() == dimensions && shape.ghost.before.size() == dimensions &&
                    shape.ghost.behind.size() == dimensions && shape.origin.size() == dimensions;
  if (!fits) {
    return Status(StatusCode::kInvalid, "the array has " + std::to_string(dimensions) +
                                            " dimensions; give as many numbers");
  }
  for (std::size_t at = 0; at < dimensions; ++at) {
    CAIRN_RETURN_IF_ERROR(check_dimension(array, shape, at));
  }
  ChunkGrid grid(array, shape);
  const std::optional<std::uint64_t> chunks = whole(grid.places_).cells();
  if (!chunks)
    return Status(StatusCode::kInvalid, "the array has more chunks than 64 bits can number");
  grid.chunks_ = *chunks;
  return grid;
}

std::uint64_t ChunkGrid::cut_away(std::size_t dimension) const {
  const std::uint64_t chunk = shape_.chunk[dimension];
  const std::uint64_t rest = shape_.origin[dimension] % chunk;
  return rest == 0 ? 0 : chunk - rest;
}

Box ChunkGrid::chunk(std::uint64_t number) const {
  const Coordinates place = place_of(number);
  Box box{place, shape_.chunk};
  for (std::size_t at = 0; at < place.size(); ++at) {
    const std::uint64_t chunk = shape_.chunk[at];
    const std::uint64_t cut = cut_away(at);
    // In cells from where the first chunk would begin if nothing of it were cut away.
    const std::uint64_t first = std::max(place[at] * chunk, cut);
    const std::uint64_t end = std::min(place[at] * chunk - cut + chunk, array_[at]);
    box.first[at] = first - cut;
    box.count[at] = end - box.first[at];
  }
  return box;
}

Box ChunkGrid::with_ghost(std::uint64_t number) const {
  return widened(chunk(number), shape_.ghost, array_);
}

std::uint64_t ChunkGrid::number_of(const Coordinates& cell) const {
  Coordinates place = cell;
  for (std::size_t at = 0; at < cell.size(); ++at)
    place[at] = (cell[at] + cut_away(at)) / shape_.chunk[at];
  return number_at(place);
}

Box ChunkGrid::chunks_of(const Box& cells) const {
  CAIRN_DCHECK(!cells.is_empty() && whole(array_).contains(cells));
  Box places = cells;
  for (std::size_t at = 0; at < cells.dimensions(); ++at) {
    const std::uint64_t cut = cut_away(at);
    places.first[at] = (cells.first[at] + cut) / shape_.chunk[at];
    const std::uint64_t last = (cells.end(at) - 1 + cut) / shape_.chunk[at];
    places.count[at] = last - places.first[at] + 1;
  }
  return places;
}

Box ChunkGrid::chunks_that_see(const Box& cells) const {
  // A cell is in the zone before a chunk if a cell so far behind it is in the chunk.
  return chunks_of(widened(cells, {shape_.ghost.behind, shape_.ghost.before}, array_));
}

// A chunk at `place` ends, with its ghost zone, at (place + 1) * chunk - cut + behind, unless the
// array does; and begins at place * chunk - cut - before, unless the array does.
std::optional<Box> ChunkGrid::chunks_around(const Box& cells) const {
  CAIRN_DCHECK(!cells.is_empty() && whole(array_).contains(cells));
  Box places = cells;
  for (std::size_t at = 0; at < cells.dimensions(); ++at) {
    const std::uint64_t chunk = shape_.chunk[at];
    const std::uint64_t cut = cut_away(at);
    const std::uint64_t last =
        std::min((cells.first[at] + cut + shape_.ghost.before[at]) / chunk, places_[at] - 1);
    const std::uint64_t reach = cells.end(at) + cut;
    const std::uint64_t behind = shape_.ghost.behind[at];
    // The first place whose end is at `reach` or behind it.
    const std::uint64_t first = reach <= behind + chunk ? 0 : (reach - behind - 1) / chunk;
    if (first > last) return std::nullopt;
    places.first[at] = first;
    places.count[at] = last - first + 1;
  }
  return places;
}

std::uint64_t ChunkGrid::number_at(const Coordinates& place) const {
  CAIRN_DCHECK(place.size() == places_.size());
  std::uint64_t number = 0;
  for (std::size_t at = 0; at < place.size(); ++at) {
    CAIRN_DCHECK(place[at] < places_[at]);
    number = number * places_[at] + place[at];
  }
  return number;
}

Coordinates ChunkGrid::place_of(std::uint64_t number) const {
  CAIRN_CHECK(number < chunks_);
  Coordinates place(places_.size(), 0);
  for (std::size_t at = places_.size(); at-- > 0;) {
    place[at] = number % places_[at];
    number /= places_[at];
  }
  return place;
}

bool next_place(const Box& places, Coordinates* place) {
  for (std::size_t at = places.dimensions(); at-- > 0;) {
    if (++(*place)[at] < places.end(at)) return true;
    (*place)[at] = places.first[at];
  }
  return false;
}

}  // namespace cairn::arrays
