// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/shape_learner.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace cairn::arrays {

namespace {

// Boxes of `count` cells, one of them at `first`, whose beginnings are multiples of `step` apart.
DimensionShape tiles(std::uint64_t count, std::uint64_t first, std::uint64_t step) {
  CAIRN_CHECK(step != 0);
  // Boxes that mostly overlap, or with holes between them: each is a chunk of its own.
  if (count > 3 * step || step > 2 * count) return {count, 0, 0, first % count};
  if (step >= count) return {step % count == 0 ? count : step, 0, 0, first % step};
  const std::uint64_t overlap = count - step;
  // Chunks begin at multiples of their size if that explains the beginnings.
  const std::uint64_t to_multiple = (step - first % step) % step;
  const std::uint64_t before = to_multiple <= overlap ? to_multiple : overlap / 2;
  const std::uint64_t behind = overlap - before;
  if (std::max(before, behind) > step) return {count, 0, 0, first % count};
  return {step, before, behind, (first + before) % step};
}

}  // namespace

DimensionLearner::Size& DimensionLearner::size_of(std::uint64_t count) {
  const auto known = std::ranges::find(sizes_, count, &Size::count);
  if (known != sizes_.end()) return *known;
  Size& least = *std::ranges::min_element(sizes_, {}, &Size::reads);
  least = {.count = count};
  return least;
}

void DimensionLearner::observe(std::uint64_t first, std::uint64_t end, std::uint64_t cells) {
  CAIRN_DCHECK(first < end && end <= cells);
  last_count_ = end - first;
  last_first_ = first;
  if (first == 0 && end != cells) at_lower_edge_ = end;
  if (first == 0 || end == cells) return;
  Size& size = size_of(end - first);
  if (size.reads++ == 0) size.first = first;
  const std::uint64_t distance = first > size.first ? first - size.first : size.first - first;
  size.step = std::gcd(size.step, distance);
}

std::optional<DimensionShape> DimensionLearner::shown() const {
  const Size& usual = *std::ranges::max_element(sizes_, {}, &Size::reads);
  if (usual.reads == 0) return std::nullopt;
  if (usual.step != 0) return tiles(usual.count, usual.first, usual.step);
  // One place in the middle, and one at the edge, which has no ghost zone before it: the difference
  // of their sizes is that zone, and the chunk in the middle begins behind it.
  const bool is_cut = at_lower_edge_ != 0 && at_lower_edge_ <= usual.count;
  const std::uint64_t before = is_cut ? usual.count - at_lower_edge_ : 0;
  const std::uint64_t step = usual.first + before;
  if (is_cut && step <= at_lower_edge_) return tiles(usual.count, usual.first, step);
  return DimensionShape{usual.count, 0, 0, usual.first % usual.count};
}

DimensionShape DimensionLearner::guessed(std::uint64_t behind) const {
  CAIRN_CHECK(last_count_ != 0);
  if (at_lower_edge_ > 2 * behind) return {at_lower_edge_ - behind, behind, behind, 0};
  return {last_count_, 0, 0, last_first_ % last_count_};
}

ShapeLearner::ShapeLearner(const Coordinates& array) : array_(array) {
  CAIRN_CHECK(!whole(array).is_empty());
}

void ShapeLearner::observe(const Box& read) {
  CAIRN_DCHECK(!read.is_empty() && whole(array_).contains(read));
  ++reads_;
  for (std::size_t at = 0; at < array_.size(); ++at)
    dimensions_[at].observe(read.first[at], read.end(at), array_[at]);
}

std::optional<ChunkShape> ShapeLearner::shape() const {
  if (reads_ < kReadsWanted) return std::nullopt;
  // A stencil mostly reaches as far in one dimension as in another.
  std::uint64_t behind = 0;
  for (std::size_t at = 0; at < array_.size(); ++at) {
    if (const auto shown = dimensions_[at].shown()) behind = std::max(behind, shown->behind);
  }
  ChunkShape shape = ChunkShape::plain(array_);
  for (std::size_t at = 0; at < array_.size(); ++at) {
    const auto shown = dimensions_[at].shown();
    const DimensionShape found = shown ? *shown : dimensions_[at].guessed(behind);
    shape.chunk[at] = std::min(found.chunk, array_[at]);
    shape.ghost.before[at] = std::min(found.before, shape.chunk[at]);
    shape.ghost.behind[at] = std::min(found.behind, shape.chunk[at]);
    shape.origin[at] = found.origin;
  }
  return shape;
}

}  // namespace cairn::arrays
