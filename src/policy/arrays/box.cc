// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/box.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::arrays {

bool Box::is_empty() const {
  return std::ranges::any_of(count.all(), [](std::uint64_t cells) { return cells == 0; });
}

std::optional<std::uint64_t> Box::cells() const {
  if (is_empty()) return 0;
  std::uint64_t product = 1;
  for (const std::uint64_t cells : count.all()) {
    if (__builtin_mul_overflow(product, cells, &product)) return std::nullopt;
  }
  return product;
}

bool Box::contains(const Box& other) const {
  CAIRN_DCHECK(dimensions() == other.dimensions());
  if (other.is_empty()) return true;
  for (std::size_t at = 0; at < dimensions(); ++at) {
    if (other.first[at] < first[at] || other.end(at) > end(at)) return false;
  }
  return true;
}

Box whole(const Coordinates& shape) { return {Coordinates(shape.size(), 0), shape}; }

std::optional<Box> intersection(const Box& left, const Box& right) {
  CAIRN_DCHECK(left.dimensions() == right.dimensions());
  Box common = left;
  for (std::size_t at = 0; at < left.dimensions(); ++at) {
    const std::uint64_t first = std::max(left.first[at], right.first[at]);
    const std::uint64_t end = std::min(left.end(at), right.end(at));
    if (first >= end) return std::nullopt;
    common.first[at] = first;
    common.count[at] = end - first;
  }
  return common;
}

Box hull(const Box& left, const Box& right) {
  CAIRN_DCHECK(left.dimensions() == right.dimensions());
  Box both = left;
  for (std::size_t at = 0; at < left.dimensions(); ++at) {
    both.first[at] = std::min(left.first[at], right.first[at]);
    both.count[at] = std::max(left.end(at), right.end(at)) - both.first[at];
  }
  return both;
}

GhostWidth GhostWidth::none(std::size_t dimensions) {
  return {Coordinates(dimensions, 0), Coordinates(dimensions, 0)};
}

bool GhostWidth::is_none() const {
  const auto is_zero = [](std::uint64_t width) { return width == 0; };
  return std::ranges::all_of(before.all(), is_zero) && std::ranges::all_of(behind.all(), is_zero);
}

Box widened(const Box& box, const GhostWidth& ghost, const Coordinates& shape) {
  CAIRN_DCHECK(whole(shape).contains(box));
  Box wide = box;
  for (std::size_t at = 0; at < box.dimensions(); ++at) {
    const std::uint64_t before = std::min(ghost.before[at], box.first[at]);
    const std::uint64_t behind = std::min(ghost.behind[at], shape[at] - box.end(at));
    wide.first[at] -= before;
    wide.count[at] += before + behind;
  }
  return wide;
}

std::optional<Box> Hyperslab::as_box() const {
  Box box{start, count};
  for (std::size_t at = 0; at < start.size(); ++at) {
    if (count[at] > 1 && stride[at] != block[at]) return std::nullopt;
    box.count[at] = count[at] * block[at];
  }
  return box;
}

Box Hyperslab::bounds() const {
  Box box{start, count};
  for (std::size_t at = 0; at < start.size(); ++at) {
    CAIRN_CHECK(count[at] != 0 && block[at] != 0);
    box.count[at] = (count[at] - 1) * stride[at] + block[at];
  }
  return box;
}

}  // namespace cairn::arrays
