// SPDX-License-Identifier: Apache-2.0
// Seeded noise for tests of regressions.
//
// Thread safety: none.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/random_source.h"

namespace cairn {

class NoiseSource {
 public:
  explicit NoiseSource(std::uint64_t seed) : random_(seed) {}

  double between(double lowest, double highest) {
    return lowest + (highest - lowest) * random_.fraction();
  }
  // Mean 0 and variance 1 (Box and Muller).
  double normal() {
    const double radius = std::sqrt(-2 * std::log(between(0x1p-60, 1)));
    return radius * std::cos(6.283185307179586 * between(0, 1));
  }
  // A factor around 1; `spread` is the standard deviation of its logarithm.
  double factor(double spread) { return std::exp(spread * normal()); }

 private:
  RandomSource random_;
};

}  // namespace cairn
