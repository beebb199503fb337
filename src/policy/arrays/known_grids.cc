// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/known_grids.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cairn::arrays {
namespace {

void append(std::string* bytes, const Coordinates& numbers) {
  for (const std::uint64_t number : numbers.all()) append_bytes(bytes, number);
}

Coordinates take(KeptReader& reader, std::size_t dimensions) {
  Coordinates numbers(dimensions, 0);
  for (std::size_t at = 0; at < dimensions; ++at) numbers[at] = reader.take<std::uint64_t>();
  return numbers;
}

Status impossible() { return {StatusCode::kInvalid, "has values that cannot be"}; }

}  // namespace

std::deque<KnownGrids::Known>::const_iterator KnownGrids::place_of(const ArrayLooks& looks) const {
  return std::find_if(known_.begin(), known_.end(),
                      [&looks](const Known& each) { return each.looks == looks; });
}

void KnownGrids::note(const ArrayLooks& looks, const ChunkShape& shape) {
  CAIRN_DCHECK(ChunkGrid::of(looks.shape, shape).is_ok());
  const auto old = place_of(looks);
  if (old != known_.end()) known_.erase(old);
  known_.push_front({looks, shape});
  if (known_.size() > kGridsMax) known_.pop_back();
  CAIRN_CHECK(known_.size() <= kGridsMax);
}

std::optional<ChunkGrid> KnownGrids::find(const ArrayLooks& looks) const {
  const auto found = place_of(looks);
  if (found == known_.end()) return std::nullopt;
  return ChunkGrid::of(looks.shape, found->shape).value();
}

void KnownGrids::add_older(const KnownGrids& older) {
  for (const Known& each : older.known_) {
    if (known_.size() == kGridsMax) break;
    if (place_of(each.looks) == known_.end()) known_.push_back(each);
  }
}

std::string KnownGrids::encode() const {
  std::string value;
  append_bytes(&value, static_cast<std::uint32_t>(known_.size()));
  for (const auto& [looks, shape] : known_) {
    append_bytes(&value, looks.cell_bytes);
    append_bytes(&value, static_cast<std::uint32_t>(looks.stored.size() != 0));
    append_bytes(&value, static_cast<std::uint32_t>(looks.shape.size()));
    for (const Coordinates* row : {&looks.shape, &shape.chunk, &shape.ghost.before,
                                   &shape.ghost.behind, &shape.origin, &looks.stored})
      append(&value, *row);
  }
  return seal(kKind, value);
}

Result<KnownGrids> KnownGrids::decode(std::string_view bytes) {
  const auto value = unseal(kKind, bytes);
  if (!value) return value.status();
  KeptReader reader(*value);
  KnownGrids grids;
  const auto count = reader.take<std::uint32_t>();
  if (count > kGridsMax) return impossible();
  for (std::uint32_t number = 0; number < count; ++number) {
    Known known;
    known.looks.cell_bytes = reader.take<std::uint64_t>();
    const auto is_stored_in_chunks = reader.take<std::uint32_t>();
    const auto dimensions = reader.take<std::uint32_t>();
    if (dimensions > kDimensionsMax || is_stored_in_chunks > 1) return impossible();
    for (Coordinates* row : {&known.looks.shape, &known.shape.chunk, &known.shape.ghost.before,
                             &known.shape.ghost.behind, &known.shape.origin})
      *row = take(reader, dimensions);
    if (is_stored_in_chunks != 0) known.looks.stored = take(reader, dimensions);
    const bool can_be = !reader.is_short() && ChunkGrid::of(known.looks.shape, known.shape) &&
                        grids.place_of(known.looks) == grids.known_.end();
    if (!can_be) return impossible();
    grids.known_.push_back(std::move(known));
  }
  if (!reader.is_at_end()) return impossible();
  return grids;
}

}  // namespace cairn::arrays
