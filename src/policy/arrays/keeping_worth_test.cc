// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/keeping_worth.h"

#include <gtest/gtest.h>

#include <functional>

namespace cairn::arrays {
namespace {

constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;
constexpr double kUnpackSeconds = 5e-3;
constexpr double kKeepSeconds = 1e-4;

// Reads `chunks` chunks one after the other, `passes` times. Returns how many were kept.
std::uint64_t passes_over(KeepingWorth& worth, std::uint64_t chunks, unsigned passes,
                          const std::function<bool(std::uint64_t)>& is_in_tiers) {
  std::uint64_t kept = 0;
  for (unsigned pass = 0; pass < passes; ++pass) {
    for (std::uint64_t chunk = 0; chunk < chunks; ++chunk) {
      if (pass > 0 && is_in_tiers(chunk)) {
        worth.note_found();
        continue;
      }
      worth.note_missed(chunk);
      worth.note_unpacked(kChunkBytes, kUnpackSeconds);
      if (!worth.is_worth()) continue;
      worth.note_kept(chunk, kKeepSeconds);
      ++kept;
    }
  }
  return kept;
}

TEST(KeepingWorth, EndsWhereNothingStaysUntilItIsReadAgain) {
  KeepingWorth worth;
  const std::uint64_t kept = passes_over(worth, 256, 3, [](std::uint64_t) { return false; });
  EXPECT_LT(kept, 256u + 32u) << "the first pass, and what it takes to see that it was in vain";
  EXPECT_EQ(worth.answer(), KeepingWorth::Answer::kNoRoom);
}

TEST(KeepingWorth, IsTriedAgainLessAndLessOften) {
  KeepingWorth worth;
  const std::uint64_t kept = passes_over(worth, 256, 100, [](std::uint64_t) { return false; });
  EXPECT_GT(kept, 2u * 256u) << "there may be room later";
  EXPECT_LT(kept, 8u * 256u);
}

TEST(KeepingWorth, GoesOnWhereThereIsRoomLater) {
  KeepingWorth worth;
  (void)passes_over(worth, 256, 2, [](std::uint64_t) { return false; });
  ASSERT_FALSE(worth.is_worth());
  const std::uint64_t kept = passes_over(worth, 256, 8, [](std::uint64_t) { return true; });
  EXPECT_TRUE(worth.is_worth());
  EXPECT_EQ(kept, 0u) << "they are found by then";
}

TEST(KeepingWorth, GoesOnWhereAPartStays) {
  KeepingWorth worth;
  (void)passes_over(worth, 256, 50, [](std::uint64_t chunk) { return chunk % 4 == 0; });
  EXPECT_TRUE(worth.is_worth()) << "a quarter of 5 ms is more than three quarters of 0.1 ms";
}

TEST(KeepingWorth, EndsWhereUnpackingIsAsFastAsACopy) {
  KeepingWorth worth;
  for (int chunk = 0; chunk < 3; ++chunk) worth.note_unpacked(kChunkBytes, 1e-4);
  EXPECT_TRUE(worth.is_worth()) << "not believed yet";
  worth.note_unpacked(kChunkBytes, 1e-4);
  EXPECT_EQ(worth.answer(), KeepingWorth::Answer::kCheap);
}

}  // namespace
}  // namespace cairn::arrays
