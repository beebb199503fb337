// SPDX-License-Identifier: Apache-2.0
// By hand, against looking through the whole order, and evicting by it against the best there is.
#include "policy/replacement/known_future.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/random_source.h"
#include "policy/replacement/farthest_future.h"

namespace cairn {
namespace {

constexpr std::uint32_t kNever = KnownFuture::kNever;

void expect_all(KnownFuture& future, const std::vector<std::uint32_t>& blocks) {
  for (const std::uint32_t block : blocks) future.expect(block);
}

TEST(KnownFuture, SaysWhenABlockIsUsedNext) {
  KnownFuture future(10);
  EXPECT_EQ(future.until_use(7), kNever) << "nothing is known yet";
  expect_all(future, {7, 3, 7, 5});
  EXPECT_EQ(future.until_use(7), 0U);
  EXPECT_EQ(future.until_use(3), 1U);
  EXPECT_EQ(future.until_use(5), 3U);
  EXPECT_EQ(future.until_use(4), kNever);
  future.pass(1);
  EXPECT_EQ(future.until_use(7), 1U) << "its second use";
  EXPECT_EQ(future.until_use(3), 0U);
  future.pass(2);
  EXPECT_EQ(future.until_use(7), kNever);
  EXPECT_EQ(future.until_use(5), 0U);
  EXPECT_EQ(future.size(), 1U);
}

TEST(KnownFuture, MovesOnByTheUsesThatArePast) {
  KnownFuture future(4);
  expect_all(future, {1, 2, 3, 4});
  EXPECT_TRUE(future.is_full());
  EXPECT_EQ(future.block_after(2), 3U);
  future.pass(2);
  EXPECT_FALSE(future.is_full());
  future.expect(1);
  EXPECT_EQ(future.until_use(1), 2U);
  EXPECT_EQ(future.until_use(2), kNever) << "it is past";
  future.pass(100);
  EXPECT_EQ(future.size(), 0U);
  future.expect(9);
  EXPECT_EQ(future.until_use(9), 0U) << "it goes on behind what was known";
}

// With blocks that meet in the table, taken out in every order.
TEST(KnownFuture, AgreesWithTheWholeOrderLookedThrough) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    RandomSource random(seed);
    const std::uint32_t blocks = 1 + random.below(300);
    const std::uint32_t stride = 1 + random.below(1'000'000);
    std::vector<std::uint32_t> order(2000);
    for (std::uint32_t& block : order) block = random.below(blocks) * stride;
    const std::size_t window = 1 + random.below(500);
    KnownFuture future(window);
    std::size_t now = 0;
    std::size_t told = 0;
    while (now < order.size()) {
      while (told < order.size() && !future.is_full()) future.expect(order[told++]);
      for (int look = 0; look < 20; ++look) {
        const std::uint32_t block = random.below(blocks) * stride;
        const auto begin = order.begin() + static_cast<std::ptrdiff_t>(now);
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(told);
        const auto found = std::find(begin, end, block);
        const auto expected = found == end ? kNever : static_cast<std::uint32_t>(found - begin);
        ASSERT_EQ(future.until_use(block), expected) << "seed " << seed << ", at " << now;
      }
      const std::uint32_t step =
          std::min(1 + random.below(7), static_cast<std::uint32_t>(future.size()));
      future.pass(step);
      now += step;
    }
  }
}

// Misses of a cache that evicts what is used last, of what is known ahead.
unsigned misses_by(KnownFuture& future, const std::vector<std::uint32_t>& order,
                   std::size_t capacity) {
  std::set<std::uint32_t> held;
  std::size_t told = 0;
  unsigned misses = 0;
  for (const std::uint32_t block : order) {
    while (told < order.size() && !future.is_full()) future.expect(order[told++]);
    future.pass(1);
    if (held.contains(block)) continue;
    ++misses;
    if (held.size() == capacity) {
      held.erase(std::max_element(held.begin(), held.end(), [&](auto left, auto right) {
        return future.until_use(left) < future.until_use(right);
      }));
    }
    held.insert(block);
  }
  return misses;
}

unsigned fewest_misses(const std::vector<std::uint32_t>& order, std::uint32_t capacity) {
  FarthestFuture best(capacity);
  for (const std::uint32_t block : order) best.expect(static_cast<PageId>(block));
  unsigned misses = 0;
  for (const std::uint32_t block : order)
    misses += best.reference(static_cast<PageId>(block)) ? 0 : 1;
  return misses;
}

std::vector<std::uint32_t> shuffled_epochs(std::uint32_t blocks, unsigned epochs,
                                           std::uint64_t seed) {
  RandomSource random(seed);
  std::vector<std::uint32_t> order;
  for (unsigned epoch = 0; epoch < epochs; ++epoch) {
    std::vector<std::uint32_t> items(blocks);
    for (std::uint32_t item = 0; item < blocks; ++item) items[item] = item;
    for (std::uint32_t left = blocks; left > 1; --left)
      std::swap(items[left - 1], items[random.below(left)]);
    order.insert(order.end(), items.begin(), items.end());
  }
  return order;
}

TEST(KnownFuture, EvictingByItMissesAsLittleAsPossible) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomSource random(seed);
    const std::uint32_t blocks = 2 + random.below(60);
    const std::uint32_t capacity = 1 + random.below(blocks);
    const auto order = shuffled_epochs(blocks, 4, seed);
    KnownFuture future(order.size());
    EXPECT_EQ(misses_by(future, order, capacity), fewest_misses(order, capacity)) << seed;
  }
}

// What the node can afford to know: three times what it has room for.
TEST(KnownFuture, AWindowOfThreeTimesTheCapacityIsNearlyAsGood) {
  constexpr std::uint32_t kBlocks = 400;
  constexpr unsigned kEpochs = 6;
  for (const std::uint32_t capacity : {40U, 100U, 200U, 300U}) {
    const auto order = shuffled_epochs(kBlocks, kEpochs, capacity);
    KnownFuture future(std::size_t{3} * capacity);
    const unsigned misses = misses_by(future, order, capacity);
    EXPECT_LE(misses, 1.15 * fewest_misses(order, capacity)) << capacity;
    // In all epochs but the first, at least the share that there is room for is a hit.
    const double reads = kBlocks * (kEpochs - 1);
    const double share = 1 - (misses - kBlocks) / reads;
    EXPECT_GE(share, 0.9 * capacity / kBlocks) << capacity;
  }
}

}  // namespace
}  // namespace cairn
