// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/distance_counts.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"

namespace cairn {

DistanceCounts::DistanceCounts(unsigned bits) : bits_(bits) {
  CAIRN_CHECK(bits >= 1 && bits <= kBitsExact);
}

// Beyond the buckets of single distances, a distance is cut to its highest bits_ bits.
std::size_t DistanceCounts::bucket_of(std::uint64_t distance) const {
  const auto width = static_cast<unsigned>(std::bit_width(distance));
  const unsigned cut = std::max(width, bits_) - bits_;
  return (std::size_t{cut} << (bits_ - 1)) + (distance >> cut);
}

std::uint64_t DistanceCounts::top_of(std::size_t bucket) const {
  if (bucket < std::size_t{1} << bits_) return bucket;
  const std::size_t cut = (bucket >> (bits_ - 1)) - 1;
  const std::size_t kept = bucket - (cut << (bits_ - 1));
  CAIRN_DCHECK(kept >> (bits_ - 1) == 1);
  return ((std::uint64_t{kept} + 1) << cut) - 1;
}

void DistanceCounts::add(std::uint64_t distance, double weight) {
  CAIRN_DCHECK(distance > 0);
  CAIRN_DCHECK(weight > 0);
  longest_ = std::max(longest_, std::min(distance, kDistanceMax));
  const std::size_t bucket = bucket_of(std::min(distance, kDistanceMax));
  if (bucket >= weights_.size()) weights_.resize(bucket + bucket / 2 + 16, 0);
  weights_[bucket] += weight;
}

// From the largest capacity down, because the misses of a capacity are the distances beyond it.
MissRatioCurve DistanceCounts::curve(double references) const {
  if (references <= 0) return {};
  std::vector<MissRatioCurve::Point> points;
  double misses = cold_;
  const auto add_point = [&](std::uint64_t capacity) {
    if (!points.empty() && points.back().capacity == capacity) return;
    points.push_back({capacity, std::min(misses / references, 1.0)});
  };
  for (std::size_t bucket = weights_.size(); bucket-- > 1;) {
    if (weights_[bucket] <= 0) continue;
    add_point(std::min(top_of(bucket), longest_));
    misses += weights_[bucket];
    if (top_of(bucket - 1) > 0) add_point(top_of(bucket - 1));
  }
  points.push_back({0, 1.0});
  std::reverse(points.begin(), points.end());
  return {std::move(points), std::min(cold_ / references, 1.0)};
}

}  // namespace cairn
