// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/box.h"

#include <gtest/gtest.h>

namespace cairn::arrays {
namespace {

TEST(Box, WhatTwoHaveInCommon) {
  EXPECT_EQ(intersection({{0, 0}, {4, 4}}, {{2, 3}, {9, 9}}), (Box{{2, 3}, {2, 1}}));
  EXPECT_EQ(intersection({{0, 0}, {4, 4}}, {{4, 0}, {1, 4}}), std::nullopt) << "side by side";
  EXPECT_EQ(hull({{0, 5}, {1, 1}}, {{7, 2}, {2, 2}}), (Box{{0, 2}, {9, 4}}));
}

TEST(Box, AGhostZoneEndsAtTheEdges) {
  const GhostWidth ghost{{2, 0}, {3, 100}};
  EXPECT_EQ(widened({{1, 4}, {2, 2}}, ghost, {10, 8}), (Box{{0, 4}, {6, 4}}));
  EXPECT_EQ(widened({{0, 0}, {10, 8}}, ghost, {10, 8}), (Box{{0, 0}, {10, 8}}));
  EXPECT_TRUE(GhostWidth::none(2).is_none());
  EXPECT_FALSE(ghost.is_none());
}

TEST(Box, CellsAreCountedAsFarAsTheyCanBe) {
  constexpr std::uint64_t kMany = std::uint64_t{1} << 63;
  EXPECT_EQ((Box{{0, 0}, {3, 4}}.cells()), 12U);
  EXPECT_EQ((Box{{0, 0}, {kMany, 2}}.cells()), std::nullopt);
  EXPECT_EQ((Box{{0, 0, 0}, {kMany, 2, 0}}.cells()), 0U);
  EXPECT_EQ((Box{}.cells()), 1U) << "a scalar";
}

TEST(Hyperslab, WithoutHolesIsABox) {
  const Hyperslab one{{3, 4}, {1, 1}, {1, 1}, {10, 20}};
  EXPECT_EQ(one.as_box(), (Box{{3, 4}, {10, 20}}));
  const Hyperslab touching{{0, 4}, {5, 1}, {3, 20}, {5, 1}};
  EXPECT_EQ(touching.as_box(), (Box{{0, 4}, {15, 20}}));
  const Hyperslab strided{{0, 4}, {6, 1}, {3, 20}, {5, 1}};
  EXPECT_EQ(strided.as_box(), std::nullopt);
  EXPECT_EQ(strided.bounds(), (Box{{0, 4}, {17, 20}}));
}

}  // namespace
}  // namespace cairn::arrays
