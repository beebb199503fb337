// SPDX-License-Identifier: Apache-2.0
#include "policy/miss_ratios/sampled_pages.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

// Multiples of the golden ratio, modulo 1, are spread evenly (Knuth, TAOCP 3, 6.4, theorem S).
constexpr std::uint32_t kGoldenStep = 0x9e3779b9U;
constexpr unsigned kSpreadBits = 20;
constexpr auto kOthersMax = static_cast<double>(DistanceCounts::kDistanceMax);
constexpr double kSpreadUnit = 1.0 / (1U << kSpreadBits);

}  // namespace

// All that is added is exact in a double, so that at rate 1 the distance is as it was.
std::uint64_t SampledPages::scaled(std::uint64_t distance) {
  spread_ += kGoldenStep;
  const double part = (spread_ >> (32 - kSpreadBits)) * kSpreadUnit;
  CAIRN_DCHECK(part < 1);
  const double others = (static_cast<double>(distance - 1) + part) * sample_.weight();
  CAIRN_DCHECK(others >= 0);
  return static_cast<std::uint64_t>(std::min(others, kOthersMax)) + 1;
}

void SampledPages::reference_sampled(std::uint64_t hash, bool counts) {
  const std::uint64_t distance = distances_.reference(hash);
  if (distance != StackDistances::kCold) {
    CAIRN_DCHECK(distance <= sample_.size());
    if (counts) counts_.add(scaled(distance), sample_.weight());
    return;
  }
  if (counts) counts_.add_cold(sample_.weight());
  sample_.add(hash);
  if (sample_.is_too_large()) distances_.forget(sample_.drop_highest());
  CAIRN_DCHECK(distances_.size() == sample_.size());
}

}  // namespace cairn
