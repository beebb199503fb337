// SPDX-License-Identifier: Apache-2.0
// Numbers of the distributions that the models of traffic have, the same on every machine: what
// <random> makes of a seed differs between libraries.
//
// Thread safety: none; each takes its turn at the source.
#pragma once

#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "base/random_source.h"

namespace cairn {

// Exponential with the mean, by inversion.
inline double exponential_number(RandomSource& source, double mean) {
  return -std::log1p(-source.fraction()) * mean;
}

// Poisson with the mean, by multiplication (Knuth, The Art of Computer Programming, volume 2,
// section 3.4.1, algorithm Q). The sum of two is one of the sum of their means, so that no mean is
// too large for exp(). Requires: 0 <= mean.
inline std::uint64_t poisson_number(RandomSource& source, double mean) {
  constexpr double kPartMax = 32;
  CAIRN_DCHECK(mean >= 0);
  std::uint64_t count = 0;
  for (double left = mean; left > 0; left -= kPartMax) {
    const double limit = std::exp(-std::fmin(left, kPartMax));
    for (double product = source.fraction(); product > limit; product *= source.fraction()) ++count;
  }
  return count;
}

}  // namespace cairn
