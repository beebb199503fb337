// SPDX-License-Identifier: Apache-2.0
// A miss-ratio curve: the share of references that a cache of a capacity misses, for every
// capacity. It stands on points, with straight lines between them, and is constant behind the last.
//
// Units: capacities in pages; ratios from 0 to 1, of all references. First references to pages,
// which miss in every cache, count as misses and are known apart.
// Thread safety: constant once it is made. Ownership: 16 bytes for each point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cairn {

class MissRatioCurve {
 public:
  struct Point {
    std::uint64_t capacity = 0;
    double miss_ratio = 0;
  };
  // The capacity beyond which another page is worth less than it was on average: the highest point
  // of the hits above the straight line from capacity 0 to the last point, both axes scaled to 1.
  // That is the greatest maximum of the difference curve of Kneedle, without smoothing (Satopaa,
  // Albrecht, Irwin, Raghavan: "Finding a 'Kneedle' in a haystack", ICDCS Workshops 2011,
  // section III). Among equals the largest capacity counts, so the knee of a loop is its length.
  struct Knee {
    std::uint64_t capacity = 0;
    double miss_ratio = 0;
    double height = 0;  // above the line, 0 to 1: near 0 the curve has no bend
  };

  // The curve of no references: it has no points and is 0 everywhere.
  MissRatioCurve() = default;
  // Requires: capacities ascend, the first is 0 and has ratio 1; 0 <= compulsory_ratio <= 1.
  MissRatioCurve(std::vector<Point> points, double compulsory_ratio);

  bool is_empty() const { return points_.empty(); }
  double at(std::uint64_t capacity) const;
  // The first references to pages.
  double compulsory_ratio() const { return compulsory_ratio_; }
  // The same at the given capacities only, for a picture or a report. Requires: they ascend.
  MissRatioCurve at_capacities(std::span<const std::uint64_t> capacities) const;
  // Whether no larger cache misses more. Curves of LRU are, and exact ones of MIN.
  bool is_monotone() const;

  // The smallest capacity with this miss ratio or less. None: no capacity has it.
  std::optional<std::uint64_t> smallest_capacity_for(double miss_ratio) const;
  // None: no capacity has a hit.
  std::optional<Knee> knee() const;

  std::span<const Point> points() const { return points_; }

 private:
  std::vector<Point> points_;
  double compulsory_ratio_ = 0;
};

// Capacities from 1 to `capacity_max`, both included, with about `per_doubling` of them in each
// doubling. Requires: per_doubling > 0. Returns: none when capacity_max is 0.
std::vector<std::uint64_t> log_spaced_capacities(std::uint64_t capacity_max, unsigned per_doubling);

}  // namespace cairn
