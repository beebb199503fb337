// SPDX-License-Identifier: Apache-2.0
// Which cached chunks serve a box that a program reads: the three base cases of ARCHIE (section
// III-C, figure 7) and their combinations. The paper goes through all cached chunks; here the grid
// says which ones a box can be in, so the cost depends on the box alone.
//
//   whole     the box is a chunk with its ghost zone: one contiguous copy
//   part      it lies in one chunk with its ghost zone
//   several   each of its cells is in a cached chunk
//   some      some are; the rest is read from the store
//   none      none is
//
// A cell that is in several cached chunks, because of ghost zones, has the same value in all: a
// write brings them up to date before it returns.
//
// Units: cells. Thread safety: a function without state.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "policy/arrays/chunk_grid.h"

namespace cairn::arrays {

enum class Match : std::uint8_t { kNone, kSome, kSeveral, kPart, kWhole };

// Cells of the box, of one chunk. Where that is cached, they are in it or in its ghost zone.
struct QueryPiece {
  std::uint64_t chunk = 0;
  Box cells;
  bool is_cached = false;
};

struct ChunkQuery {
  Match match = Match::kNone;
  // Each cell of the box is in one of them. In the order of their chunks.
  std::vector<QueryPiece> pieces;
};

using IsCached = std::function<bool(std::uint64_t chunk)>;

// Asks for a chunk at most twice. Requires: a box of the grid's array that is not empty.
ChunkQuery query(const ChunkGrid& grid, const Box& box, const IsCached& is_cached);

}  // namespace cairn::arrays
