// SPDX-License-Identifier: Apache-2.0
// What the chooser is worth on classes of orders whose parameters are drawn.
#include <gtest/gtest.h>

#include "policy/prefetch/testing/drawn_patterns.h"
#include "policy/prefetch/testing/prefetch_model.h"

namespace cairn {
namespace {

using testing::AccessPattern;
using testing::PrefetchResult;

constexpr std::uint64_t kSeeds = 12;

std::string text_of(const AccessPattern& pattern, const PrefetchResult& result) {
  return pattern.name + ": coverage " + std::to_string(result.coverage) + ", late " +
         std::to_string(result.late) + ", accuracy " + std::to_string(result.accuracy);
}

// Eight reads ahead are one or two for each of eight walks.
TEST(ChooserClasses, ForeseesSeveralWalksThroughOneStream) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AccessPattern pattern = testing::walks_through_one(seed, 3000);
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_GE(result.coverage + result.late, 0.90) << text_of(pattern, result);
    EXPECT_GE(result.accuracy, 0.95) << text_of(pattern, result);
  }
}

// What comes in the next four reads is late here, so late is good.
TEST(ChooserClasses, ForeseesExtentsToTheirLikelyEnd) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AccessPattern pattern = testing::extents_of_unknown_length(seed, 20'000);
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_GE(result.coverage + result.late, 0.85) << text_of(pattern, result);
    EXPECT_GE(result.accuracy, 0.85) << text_of(pattern, result);
  }
}

TEST(ChooserClasses, FindsThePlaceInAShuffleThatChanges) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AccessPattern pattern = testing::changing_shuffle(seed, 1500);
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_GE(result.coverage + result.late, 0.82) << text_of(pattern, result);
    EXPECT_GE(result.accuracy, 0.85) << text_of(pattern, result);
  }
}

TEST(ChooserClasses, LeavesADriftingWalkAlone) {
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const AccessPattern pattern = testing::drifting_walk(seed, 5000);
    const PrefetchResult result = testing::measure_chooser(pattern);
    EXPECT_LE(result.waste, 0.02) << text_of(pattern, result);
  }
}

}  // namespace
}  // namespace cairn
