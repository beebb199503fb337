// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/chunk_query.h"

#include <algorithm>
#include <optional>

#include "base/check.h"

namespace cairn::arrays {
namespace {

// The cached chunk that has all of the box, itself or in its ghost zone.
std::optional<QueryPiece> in_one_chunk(const ChunkGrid& grid, const Box& box,
                                       const IsCached& is_cached) {
  const std::optional<Box> places = grid.chunks_around(box);
  if (!places) return std::nullopt;
  Coordinates place = places->first;
  do {
    const std::uint64_t number = grid.number_at(place);
    if (is_cached(number)) return QueryPiece{number, box, true};
  } while (next_place(*places, &place));
  return std::nullopt;
}

}  // namespace

ChunkQuery query(const ChunkGrid& grid, const Box& box, const IsCached& is_cached) {
  CAIRN_DCHECK(!box.is_empty() && whole(grid.array()).contains(box));
  ChunkQuery answer;
  if (const auto piece = in_one_chunk(grid, box, is_cached)) {
    answer.match = grid.with_ghost(piece->chunk) == box ? Match::kWhole : Match::kPart;
    answer.pieces.push_back(*piece);
    return answer;
  }
  grid.for_each(grid.chunks_of(box), [&](std::uint64_t number) {
    const std::optional<Box> cells = intersection(grid.chunk(number), box);
    CAIRN_CHECK(cells.has_value());
    answer.pieces.push_back({number, *cells, is_cached(number)});
  });
  const auto cached = std::ranges::count_if(answer.pieces, &QueryPiece::is_cached);
  if (static_cast<std::size_t>(cached) == answer.pieces.size()) {
    answer.match = Match::kSeveral;
  } else if (cached != 0) {
    answer.match = Match::kSome;
  }
  return answer;
}

}  // namespace cairn::arrays
