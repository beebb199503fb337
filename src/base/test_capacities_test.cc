// SPDX-License-Identifier: Apache-2.0
#include "base/test_capacities.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace cairn {
namespace {

TEST(TestCapacities, AreThoseOfTheVariable) {
  ::unsetenv(kTestCapacitiesVariable);
  EXPECT_EQ(capacity_of("holds", 100), 100u);
  ::setenv(kTestCapacitiesVariable, "holds=7,objects=12,pieces=nothing", 1);
  EXPECT_EQ(capacity_of("holds", 100), 7u);
  EXPECT_EQ(capacity_of("objects", 100), 12u);
  EXPECT_EQ(capacity_of("objects", 5), 5u) << "a table is never larger than it would be";
  EXPECT_EQ(capacity_of("hold", 100), 100u) << "names are whole";
  EXPECT_EQ(capacity_of("pieces", 100), 100u);
  ::unsetenv(kTestCapacitiesVariable);
}

}  // namespace
}  // namespace cairn
