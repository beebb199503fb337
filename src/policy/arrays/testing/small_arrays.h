// SPDX-License-Identifier: Apache-2.0
// Arrays so small that a test can look at each of their cells.
//
// Thread safety: that of the source of random numbers.
#pragma once

#include <random>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays::testing {

// An array, a shape of chunks and a box of it, all small.
struct SmallArray {
  Coordinates array;
  ChunkShape shape;
  Box box;
};

inline SmallArray draw(std::mt19937& random) {
  const auto up_to = [&](std::uint64_t most) {
    return std::uniform_int_distribution<std::uint64_t>(0, most)(random);
  };
  const std::size_t dimensions = 1 + up_to(2);
  SmallArray made{Coordinates(dimensions, 0), ChunkShape::plain(Coordinates(dimensions, 1)), {}};
  made.box = whole(made.array);
  for (std::size_t at = 0; at < dimensions; ++at) {
    const std::uint64_t cells = 1 + up_to(9);
    made.array[at] = cells;
    made.shape.chunk[at] = 1 + up_to(cells - 1);
    made.shape.ghost.before[at] = up_to(made.shape.chunk[at]);
    made.shape.ghost.behind[at] = up_to(made.shape.chunk[at]);
    made.shape.origin[at] = up_to(cells - 1);
    made.box.first[at] = up_to(cells - 1);
    made.box.count[at] = 1 + up_to(cells - 1 - made.box.first[at]);
  }
  return made;
}

}  // namespace cairn::arrays::testing
