// SPDX-License-Identifier: Apache-2.0
// Boxes: the cells of an array between two corners, without holes; and hyperslabs, which programs
// select and which may have holes.
//
// Units: cells. Thread safety: values.
#pragma once

#include <cstdint>
#include <optional>

#include "policy/arrays/coordinates.h"

namespace cairn::arrays {

struct Box {
  Coordinates first;  // the corner with the lowest coordinates
  Coordinates count;  // cells in each dimension

  std::size_t dimensions() const { return first.size(); }
  // Behind the last cell in that dimension. Requires: a box of an array, so nothing overflows.
  std::uint64_t end(std::size_t dimension) const { return first[dimension] + count[dimension]; }
  // A box without dimensions is a scalar's, and has one cell.
  bool is_empty() const;
  // None where there are more than 64 bits count.
  std::optional<std::uint64_t> cells() const;
  bool contains(const Box& other) const;
  bool operator==(const Box&) const = default;
};

// The box of all cells of an array of that shape.
Box whole(const Coordinates& shape);

// What two boxes of an array have in common; none if that is nothing.
std::optional<Box> intersection(const Box& left, const Box& right);

// The smallest box that contains both.
Box hull(const Box& left, const Box& right);

// How far a ghost zone reaches beyond a chunk, in each dimension. The paper's ghost zone has the
// same width on both sides (ARCHIE, section II); windows that overlap their successor have one
// side.
struct GhostWidth {
  Coordinates before;
  Coordinates behind;

  static GhostWidth none(std::size_t dimensions);
  // As in the paper: `width` on both sides.
  static GhostWidth around(const Coordinates& width) { return {width, width}; }
  bool is_none() const;
  bool operator==(const GhostWidth&) const = default;
};

// The box with its ghost zone, which is cut at the edges of the array.
Box widened(const Box& box, const GhostWidth& ghost, const Coordinates& shape);

// A regular selection as H5Sselect_hyperslab() makes it: in each dimension `count` blocks of
// `block` cells, `stride` apart.
struct Hyperslab {
  Coordinates start;
  Coordinates stride;
  Coordinates count;
  Coordinates block;

  // The selection as a box, if it has no holes.
  std::optional<Box> as_box() const;
  // From its first cell to its last. Requires: it is not empty.
  Box bounds() const;
};

}  // namespace cairn::arrays
