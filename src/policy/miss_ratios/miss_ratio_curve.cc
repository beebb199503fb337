// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/miss_ratio_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace cairn {
namespace {

// Heights that differ by less are equal but for rounding.
constexpr double kKneeTolerance = 1e-9;

double ratio_between(const MissRatioCurve::Point& left, const MissRatioCurve::Point& right,
                     std::uint64_t capacity) {
  CAIRN_DCHECK(left.capacity <= capacity);
  CAIRN_DCHECK(capacity < right.capacity);
  const double part = static_cast<double>(capacity - left.capacity) /
                      static_cast<double>(right.capacity - left.capacity);
  return left.miss_ratio + part * (right.miss_ratio - left.miss_ratio);
}

bool is_before(const MissRatioCurve::Point& left, const MissRatioCurve::Point& right) {
  return left.capacity < right.capacity;
}

}  // namespace

MissRatioCurve::MissRatioCurve(std::vector<Point> points, double compulsory_ratio)
    : points_(std::move(points)), compulsory_ratio_(compulsory_ratio) {
  CAIRN_CHECK(!points_.empty());
  CAIRN_CHECK(points_.front().capacity == 0);
  CAIRN_DCHECK(points_.front().miss_ratio == 1);
  CAIRN_DCHECK(
      std::adjacent_find(points_.begin(), points_.end(), [](const Point& left, const Point& right) {
        return !is_before(left, right);
      }) == points_.end());
  CAIRN_DCHECK(compulsory_ratio >= 0);
  CAIRN_DCHECK(compulsory_ratio <= 1);
}

double MissRatioCurve::at(std::uint64_t capacity) const {
  if (points_.empty()) return 0;
  const auto right =
      std::upper_bound(points_.begin(), points_.end(), Point{capacity, 0}, is_before);
  CAIRN_DCHECK(right != points_.begin());
  if (right == points_.end()) return points_.back().miss_ratio;
  return ratio_between(*(right - 1), *right, capacity);
}

MissRatioCurve MissRatioCurve::at_capacities(std::span<const std::uint64_t> capacities) const {
  if (points_.empty()) return {};
  std::vector<Point> points = {points_.front()};
  for (const std::uint64_t capacity : capacities) {
    CAIRN_DCHECK(capacity >= points.back().capacity);
    if (capacity > points.back().capacity) points.push_back({capacity, at(capacity)});
  }
  return {std::move(points), compulsory_ratio_};
}

bool MissRatioCurve::is_monotone() const {
  return std::is_sorted(points_.begin(), points_.end(), [](const Point& left, const Point& right) {
    return left.miss_ratio > right.miss_ratio;
  });
}

std::optional<std::uint64_t> MissRatioCurve::smallest_capacity_for(double miss_ratio) const {
  const auto right = std::find_if(points_.begin(), points_.end(), [&](const Point& point) {
    return point.miss_ratio <= miss_ratio;
  });
  if (right == points_.end()) return std::nullopt;
  if (right == points_.begin()) return right->capacity;
  const Point& left = *(right - 1);
  CAIRN_DCHECK(left.miss_ratio > right->miss_ratio);
  const double part = (left.miss_ratio - miss_ratio) / (left.miss_ratio - right->miss_ratio);
  const double pages = part * static_cast<double>(right->capacity - left.capacity);
  const std::uint64_t capacity = left.capacity + static_cast<std::uint64_t>(std::ceil(pages));
  return std::clamp(capacity, left.capacity + 1, right->capacity);
}

std::optional<MissRatioCurve::Knee> MissRatioCurve::knee() const {
  double lowest = 1;
  for (const Point& point : points_) lowest = std::min(lowest, point.miss_ratio);
  if (lowest >= 1) return std::nullopt;
  const auto last = static_cast<double>(points_.back().capacity);
  CAIRN_DCHECK(last > 0);
  Knee knee{0, 1, 0};
  for (const Point& point : points_) {
    const double hits = (1 - point.miss_ratio) / (1 - lowest);
    const double height = hits - static_cast<double>(point.capacity) / last;
    if (height < knee.height - kKneeTolerance) continue;
    knee = Knee{point.capacity, point.miss_ratio, std::max(height, knee.height)};
  }
  return knee;
}

std::vector<std::uint64_t> log_spaced_capacities(std::uint64_t capacity_max,
                                                 unsigned per_doubling) {
  CAIRN_CHECK(per_doubling > 0);
  std::vector<std::uint64_t> capacities;
  const double factor = std::exp2(1.0 / per_doubling);
  for (double at = 1; at < static_cast<double>(capacity_max); at *= factor) {
    const auto capacity = static_cast<std::uint64_t>(std::llround(at));
    if (capacity >= capacity_max) break;
    if (capacities.empty() || capacity > capacities.back()) capacities.push_back(capacity);
  }
  if (capacity_max > 0) capacities.push_back(capacity_max);
  return capacities;
}

}  // namespace cairn
