// SPDX-License-Identifier: Apache-2.0
// Streams of page keys whose miss ratios tests know or can find out: Zipf, loops, mixtures.
//
// Thread safety: pure functions. Streams of one seed are equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random_source.h"
#include "policy/miss_ratios/miss_ratio_curve.h"

namespace cairn::testing {

using PageStream = std::vector<std::uint64_t>;

// Independent references; the page of rank i is used in proportion to i^-exponent.
inline PageStream zipf_stream(std::uint32_t pages, double exponent, std::size_t length,
                              std::uint64_t seed) {
  std::vector<double> sums(pages);
  double sum = 0;
  for (std::uint32_t rank = 0; rank < pages; ++rank) {
    sum += std::pow(rank + 1, -exponent);
    sums[rank] = sum;
  }
  RandomSource random(seed);
  PageStream stream(length);
  for (std::uint64_t& key : stream) {
    const double at = random.fraction() * sum;
    key = static_cast<std::uint64_t>(std::upper_bound(sums.begin(), sums.end(), at) - sums.begin());
  }
  return stream;
}

inline PageStream loop_stream(std::uint32_t pages, std::size_t length, std::uint64_t first = 0) {
  PageStream stream(length);
  for (std::size_t at = 0; at < length; ++at) stream[at] = first + at % pages;
  return stream;
}

// Turns of Zipf references, a loop, a smaller loop, and pages that are used once.
inline PageStream mixed_stream(std::uint32_t pages, std::size_t length, std::uint64_t seed) {
  const PageStream zipf = zipf_stream(pages, 0.9, length, seed);
  RandomSource random(seed + 1);
  PageStream stream;
  std::uint64_t places[3] = {};
  while (stream.size() < length) {
    const std::uint32_t kind = random.below(5);
    const std::size_t turn = std::min<std::size_t>(1 + random.below(2000), length - stream.size());
    for (std::size_t step = 0; step < turn; ++step) {
      switch (kind) {
        case 0:
          stream.push_back((std::uint64_t{1} << 40) + places[0]++ % pages);
          break;
        case 1:
          stream.push_back((std::uint64_t{2} << 40) + places[1]++ % (pages / 8 + 1));
          break;
        case 2:
          stream.push_back((std::uint64_t{3} << 40) + places[2]++);
          break;
        default:
          stream.push_back(zipf[stream.size()]);
      }
    }
  }
  return stream;
}

// The mean distance of two curves, over capacities in even steps up to `capacity_max`.
inline double mean_error(const MissRatioCurve& one, const MissRatioCurve& other,
                         std::uint64_t capacity_max) {
  constexpr std::uint64_t kSteps = 200;
  double sum = 0;
  for (std::uint64_t step = 1; step <= kSteps; ++step) {
    const std::uint64_t capacity = std::max<std::uint64_t>(capacity_max * step / kSteps, 1);
    sum += std::abs(one.at(capacity) - other.at(capacity));
  }
  return sum / kSteps;
}

// The same over logarithmic steps, which give small capacities as much weight as large ones.
inline double mean_error_at(const MissRatioCurve& one, const MissRatioCurve& other,
                            const std::vector<std::uint64_t>& capacities) {
  double sum = 0;
  for (const std::uint64_t capacity : capacities)
    sum += std::abs(one.at(capacity) - other.at(capacity));
  return sum / static_cast<double>(std::max<std::size_t>(capacities.size(), 1));
}

}  // namespace cairn::testing
