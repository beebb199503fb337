// SPDX-License-Identifier: Apache-2.0
#include "base/nearest_name.h"

#include <gtest/gtest.h>

#include <array>

namespace cairn {
namespace {

TEST(NearestName, ForgivesASlip) {
  constexpr std::array<std::string_view, 3> kNames = {"capacity", "huge_pages", "run"};
  EXPECT_EQ(nearest_name("capcity", kNames), "capacity");
  EXPECT_EQ(nearest_name("huge-pages", kNames), "huge_pages");
  EXPECT_EQ(nearest_name("rnu", kNames), "run");
  EXPECT_EQ(nearest_name("colour", kNames), "");
}

}  // namespace
}  // namespace cairn
