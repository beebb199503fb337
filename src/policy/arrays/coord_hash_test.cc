// SPDX-License-Identifier: Apache-2.0
// Numbers of cells and names of chunks, against the paper's examples and against counting.
#include "policy/arrays/coord_hash.h"

#include <gtest/gtest.h>

namespace cairn::arrays {
namespace {

TEST(CoordHash, ThePapersChunkOfAnArrayOfEightByEight) {
  const auto hash = CoordHash::of({8, 8});
  ASSERT_TRUE(hash.is_ok());
  EXPECT_EQ((*hash)({0, 0}), 0U);
  // 3 * 8 + 3. The paper says 24, which is cell (3,0).
  EXPECT_EQ((*hash)({3, 3}), 27U);
  EXPECT_EQ(hash->name_of({{0, 0}, {4, 4}}), "0-27");
}

TEST(CoordHash, NumbersEveryCellOnceAndBack) {
  const auto hash = CoordHash::of({3, 5, 2, 4});
  ASSERT_TRUE(hash.is_ok());
  for (std::uint64_t number = 0; number < hash->cells(); ++number) {
    const Coordinates cell = hash->revert(number);
    EXPECT_EQ((*hash)(cell), number);
    EXPECT_EQ(cell[3], number % 4);
    EXPECT_EQ(cell[0], number / 40) << "what is left after the divisions, not the number itself";
  }
}

TEST(CoordHash, AChunkIsFoundByItsName) {
  const auto hash = CoordHash::of({100, 7, 1000});
  ASSERT_TRUE(hash.is_ok());
  const Box chunk{{90, 2, 512}, {10, 5, 488}};
  const auto found = hash->chunk_named(hash->name_of(chunk));
  ASSERT_TRUE(found.is_ok());
  EXPECT_EQ(*found, chunk);
}

TEST(CoordHash, WhatIsNoNameOfAChunkIsRefused) {
  const auto hash = CoordHash::of({8, 8});
  ASSERT_TRUE(hash.is_ok());
  for (const char* name : {"", "-", "0", "0-", "-27", "0-64", "a-27", "0-27x", "0--27", "27-0",
                           "1-8", "0-18446744073709551616"}) {
    EXPECT_EQ(hash->chunk_named(name).status().code(), StatusCode::kInvalid) << name;
  }
}

TEST(CoordHash, AnArrayThatSixtyFourBitsCannotNumberIsRefused) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 32;
  EXPECT_TRUE(CoordHash::of({kHalf, kHalf - 1}).is_ok());
  EXPECT_EQ(CoordHash::of({kHalf, kHalf}).status().code(), StatusCode::kInvalid);
  EXPECT_EQ(CoordHash::of(Coordinates(32, 4)).status().code(), StatusCode::kInvalid);
  const auto last = CoordHash::of({kHalf, kHalf - 1});
  EXPECT_EQ(last->revert((*last)({kHalf - 1, kHalf - 2})), Coordinates({kHalf - 1, kHalf - 2}));
}

TEST(CoordHash, AScalarHasOneCell) {
  const auto hash = CoordHash::of({});
  ASSERT_TRUE(hash.is_ok());
  EXPECT_EQ(hash->cells(), 1U);
  EXPECT_EQ((*hash)({}), 0U);
  EXPECT_EQ(hash->revert(0).size(), 0U);
}

}  // namespace
}  // namespace cairn::arrays
