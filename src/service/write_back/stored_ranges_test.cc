// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/stored_ranges.h"

#include <gtest/gtest.h>

namespace cairn::node {
namespace {

StoredRanges of(std::initializer_list<std::pair<std::uint64_t, std::uint64_t>> ranges) {
  StoredRanges all;
  for (const auto& [begin, end] : ranges) all.add(begin, end);
  return all;
}

TEST(StoredRangesTest, RangesThatTouchAreOne) {
  EXPECT_EQ(of({{0, 10}, {20, 30}, {10, 20}}), of({{0, 30}}));
  EXPECT_EQ(of({{5, 8}, {0, 100}, {90, 95}}), of({{0, 100}}));
  EXPECT_EQ(of({{3, 3}}), StoredRanges());
}

TEST(StoredRangesTest, WhatIsSubtractedIsCutOut) {
  StoredRanges all = of({{0, 10}, {20, 30}, {40, 50}});
  all.subtract(of({{5, 25}, {40, 60}}));
  EXPECT_EQ(all, of({{0, 5}, {25, 30}}));
  all.subtract(of({{26, 27}}));
  EXPECT_EQ(all, of({{0, 5}, {25, 26}, {27, 30}}));
  all.subtract(of({{0, 100}}));
  EXPECT_TRUE(all.is_empty());
}

TEST(StoredRangesTest, TooManyRangesCountAsOneAndNothingIsSubtractedForIt) {
  StoredRanges many;
  for (std::uint64_t at = 0; at <= StoredRanges::kRangesMax; ++at) many.add(at * 10, at * 10 + 1);
  EXPECT_FALSE(many.is_exact());
  StoredRanges lost = of({{3, 5}});
  lost.subtract(many);
  EXPECT_EQ(lost, of({{3, 5}}));
  lost.subtract(StoredRanges::everything());
  EXPECT_FALSE(lost.is_empty());
}

}  // namespace
}  // namespace cairn::node
