// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/bucket_hint.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

constexpr std::uint32_t kFirst = 1000;

BlockNumber block(std::uint32_t number) { return static_cast<BlockNumber>(number); }
BucketIndex bucket(std::uint32_t index) { return static_cast<BucketIndex>(index); }

TEST(BucketHint, SaysNothingBeforeItHasSeenSome) {
  BucketHint hint;
  EXPECT_EQ(hint.guess(block(0)), BucketIndex::kNone);
  hint.learn(block(3), bucket(kFirst + 3));
  EXPECT_EQ(hint.guess(block(3)), BucketIndex::kNone) << "one is no run";
}

TEST(BucketHint, FollowsARunOfBuckets) {
  BucketHint hint;
  for (std::uint32_t number = 0; number < 10; ++number)
    hint.learn(block(number), bucket(kFirst + number));
  EXPECT_EQ(hint.guess(block(500)), bucket(kFirst + 500));
}

TEST(BucketHint, FollowsTwoRunsOfOneFile) {
  BucketHint hint;
  constexpr std::uint32_t kFar = 5000;
  for (std::uint32_t number = 0; number < 10; ++number) {
    hint.learn(block(number), bucket(kFirst + number));
    hint.learn(block(kFar + number), bucket(number + 1));
  }
  EXPECT_EQ(hint.guess(block(20)), bucket(kFirst + 20));
  EXPECT_EQ(hint.guess(block(kFar + 20)), bucket(21));
}

TEST(BucketHint, GivesUpOnAScatteredFile) {
  BucketHint hint;
  for (std::uint32_t number = 0; number < 10; ++number)
    hint.learn(block(number), bucket(kFirst + number));
  for (std::uint32_t number = 10; number < 20; ++number)
    hint.learn(block(number), bucket(kFirst + number * 7 % 31));
  EXPECT_EQ(hint.guess(block(20)), BucketIndex::kNone);
}

TEST(BucketHint, ABlockThatIsNowhereTeachesNothing) {
  BucketHint hint;
  for (std::uint32_t number = 0; number < 10; ++number)
    hint.learn(block(number), bucket(kFirst + number));
  for (std::uint32_t number = 0; number < 100; ++number)
    hint.learn(block(number), BucketIndex::kNone);
  EXPECT_EQ(hint.guess(block(20)), bucket(kFirst + 20));
}

}  // namespace
}  // namespace cairn
