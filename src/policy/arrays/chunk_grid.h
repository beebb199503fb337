// SPDX-License-Identifier: Apache-2.0
// How an array is cut into chunks of the cache, which have the shape of the program's accesses, not
// of the file's layout; with ghost zones around them (ARCHIE, sections II and III-E).
//
// Chunks tile the array: each cell is in one. Those at the edges are cut there, and so are their
// ghost zones. Chunks are numbered in row-major order, as equation 3 numbers cells. `origin` is
// where some chunk begins, for programs that do not begin at cell 0.
//
//   array [8,8], chunks [4,4], ghost [1,1]; chunk 0 with its ghost zone is the box [0:5, 0:5]
//
//      c c c c g .
//      c c c c g .
//      c c c c g .
//      c c c c g .
//      g g g g g .
//
// Units: cells; chunks where it says so. Thread safety: values; all is const.
#pragma once

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "policy/arrays/box.h"

namespace cairn::arrays {

struct ChunkShape {
  Coordinates chunk;
  GhostWidth ghost;
  Coordinates origin;

  static ChunkShape plain(const Coordinates& chunk);
  bool operator==(const ChunkShape&) const = default;
};

class ChunkGrid {
 public:
  // Errors: kInvalid, and which number of the shape is wrong: not as many dimensions as the array,
  // a chunk of 0 cells or larger than the array, a ghost zone wider than its chunk, more chunks
  // than 64 bits count.
  static Result<ChunkGrid> of(const Coordinates& array, const ChunkShape& shape);

  const Coordinates& array() const { return array_; }
  const ChunkShape& shape() const { return shape_; }
  std::uint64_t chunks() const { return chunks_; }

  // The cells of a chunk, without its ghost zone and with it. Requires: number < chunks().
  Box chunk(std::uint64_t number) const;
  Box with_ghost(std::uint64_t number) const;

  // The chunk that a cell of the array is in.
  std::uint64_t number_of(const Coordinates& cell) const;

  // The chunks that the cells of a box are in, as a box of the grid. Requires: a box of the array
  // that is not empty.
  Box chunks_of(const Box& cells) const;
  // The chunks that have one of these cells in their ghost zones or in themselves: those that a
  // write into the box concerns.
  Box chunks_that_see(const Box& cells) const;
  // The chunks that have all of these cells in themselves or in their ghost zones; none if there is
  // no such chunk. Requires: as chunks_of().
  std::optional<Box> chunks_around(const Box& cells) const;
  // The number of a chunk of the grid, and back.
  std::uint64_t number_at(const Coordinates& place) const;
  Coordinates place_of(std::uint64_t number) const;

  // Calls `visit(number)` for each chunk of a box of the grid, in the order of their numbers.
  template <typename Visit>
  void for_each(const Box& places, Visit&& visit) const;

 private:
  ChunkGrid(const Coordinates& array, const ChunkShape& shape);

  // Where chunks of the dimension end: cells of the first one that is cut away by the origin.
  std::uint64_t cut_away(std::size_t dimension) const;

  Coordinates array_;
  ChunkShape shape_;
  Coordinates places_;  // chunks in each dimension
  std::uint64_t chunks_ = 1;
};

// Counts up in row-major order, over `places`. Returns false behind the last.
bool next_place(const Box& places, Coordinates* place);

template <typename Visit>
void ChunkGrid::for_each(const Box& places, Visit&& visit) const {
  if (places.is_empty()) return;
  Coordinates place = places.first;
  do {
    visit(number_at(place));
  } while (next_place(places, &place));
}

}  // namespace cairn::arrays
