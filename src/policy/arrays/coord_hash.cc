// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/coord_hash.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "base/check.h"

namespace cairn::arrays {

namespace {

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

CoordHash::CoordHash(const Coordinates& shape, std::uint64_t cells)
    : shape_(shape), steps_(shape.size(), 1), cells_(cells) {
  for (std::size_t at = shape.size(); at-- > 1;) steps_[at - 1] = steps_[at] * shape[at];
}

Result<CoordHash> CoordHash::of(const Coordinates& shape) {
  const std::optional<std::uint64_t> cells = whole(shape).cells();
  if (!cells)
    return Status(StatusCode::kInvalid, "the array has more cells than 64 bits can number");
  return CoordHash(shape, *cells);
}

std::uint64_t CoordHash::operator()(const Coordinates& cell) const {
  CAIRN_DCHECK(cell.size() == shape_.size());
  std::uint64_t hash = 0;
  for (std::size_t at = 0; at < cell.size(); ++at) {
    CAIRN_DCHECK(cell[at] < shape_[at]);
    hash += cell[at] * steps_[at];
  }
  return hash;
}

Coordinates CoordHash::revert(std::uint64_t hash) const {
  CAIRN_CHECK(hash < cells_);
  Coordinates cell(shape_.size(), 0);
  for (std::size_t at = shape_.size(); at-- > 1;) {
    cell[at] = hash % shape_[at];
    hash /= shape_[at];
  }
  if (shape_.size() != 0) cell[0] = hash;
  return cell;
}

std::string CoordHash::name_of(const Box& chunk) const {
  CAIRN_CHECK(!chunk.is_empty() && whole(shape_).contains(chunk));
  Coordinates last = chunk.first;
  for (std::size_t at = 0; at < last.size(); ++at) last[at] = chunk.end(at) - 1;
  return std::to_string((*this)(chunk.first)) + "-" + std::to_string((*this)(last));
}

Result<Box> CoordHash::chunk_named(const std::string& name) const {
  const Status no_name(StatusCode::kInvalid, name + ": not the name of a chunk of this array");
  const std::size_t dash = name.find('-');
  if (dash == std::string::npos) return no_name;
  const std::string_view text = name;
  const auto first = number_in(text.substr(0, dash));
  const auto last = number_in(text.substr(dash + 1));
  if (!first || !last || *first >= cells_ || *last >= cells_) return no_name;
  const Coordinates last_cell = revert(*last);
  Box chunk{revert(*first), Coordinates(shape_.size(), 0)};
  for (std::size_t at = 0; at < shape_.size(); ++at) {
    if (last_cell[at] < chunk.first[at]) return no_name;
    chunk.count[at] = last_cell[at] - chunk.first[at] + 1;
  }
  return chunk;
}

}  // namespace cairn::arrays
