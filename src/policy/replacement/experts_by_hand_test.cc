// SPDX-License-Identifier: Apache-2.0
// Small cases of the published experts, worked out by hand, and the best that can be done at all
// found by trying everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/replacement/compared_experts.h"

namespace cairn {
namespace {

// The pages are letters. Returns a mark for each reference: the letter that left, '.' for a hit,
// '+' for a miss that nobody had to leave for.
std::string trace(Expert& expert, const std::string& pages) {
  std::string marks;
  for (const char letter : pages) {
    const bool is_hit = expert.reference(static_cast<PageId>(letter));
    const auto evicted = expert.evicted();
    marks += is_hit ? '.' : evicted.empty() ? '+' : static_cast<char>(raw(evicted.front()));
  }
  return marks;
}

TEST(RecencyExpert, WhatWasUsedLongestAgoLeaves) {
  RecencyExpert lru(RecencyExpert::Order::kLru, 3);
  EXPECT_EQ(trace(lru, "abcadaeb"), "+++.b.cd");
}

TEST(RecencyExpert, WhatWasUsedLastLeaves) {
  RecencyExpert mru(RecencyExpert::Order::kMru, 3);
  EXPECT_EQ(trace(mru, "abcdabcd"), "+++c..b.");
}

TEST(RecencyExpert, WhatCameFirstLeaves) {
  RecencyExpert fifo(RecencyExpert::Order::kFifo, 3);
  EXPECT_EQ(trace(fifo, "abcadab"), "+++.abc");
}

TEST(FrequencyExpert, WhatWasUsedLeastLeavesTheOldestOfEqualOnes) {
  FrequencyExpert lfu(3);
  EXPECT_EQ(trace(lfu, "aabbcdac"), "+.+.+c.d");
  lfu.forget(static_cast<PageId>('a'));
  EXPECT_EQ(trace(lfu, "ace"), "+.a") << "its uses are forgotten with it";
}

// Capacity 10: one page in the small queue, nine in the main one.
TEST(S3Fifo, WhatComesBackSoonGoesToTheMainQueue) {
  S3Fifo expert(10);
  EXPECT_EQ(trace(expert, "abcdefghij"), "++++++++++");
  // a waits in the small queue and leaves; it is remembered, and comes back into the main one,
  // from where the oldest leaves.
  EXPECT_EQ(trace(expert, "k"), "a");
  EXPECT_TRUE(expert.remembers(static_cast<PageId>('a')));
  EXPECT_EQ(trace(expert, "a"), "k") << "the small queue gives way first";
  EXPECT_EQ(trace(expert, "l"), "b") << "the main queue is over its share now";
}

TEST(S3Fifo, TwoUsesInTheSmallQueueAreEnough) {
  S3Fifo expert(10);
  (void)trace(expert, "abcdefghij");
  // a is used twice while it waits: it moves on, and the main queue's oldest leaves instead.
  EXPECT_EQ(trace(expert, "aak"), "..b");
  EXPECT_TRUE(expert.holds(static_cast<PageId>('a')));
}

// Capacity 5: three pages of low distance, two others. The paper's example in small.
TEST(Lirs, AScanPassesThroughTheQueue) {
  Lirs expert(5);
  EXPECT_EQ(trace(expert, "abc"), "+++");
  EXPECT_EQ(trace(expert, "12345678"), "++123456");
  EXPECT_EQ(trace(expert, "abc"), "...") << "a scan of any length leaves them alone";
}

TEST(Lirs, AShorterDistanceTakesThePlaceOfALongerOne) {
  Lirs expert(5);
  (void)trace(expert, "abc");
  // d is used twice before a is used again: it becomes one of low distance, and a can leave.
  EXPECT_EQ(trace(expert, "dd"), "+.");
  EXPECT_EQ(trace(expert, "123"), "+a1");
  EXPECT_EQ(trace(expert, "dbc"), "...");
}

// The fewest misses of all ways to evict: breadth first over the sets that can be held.
unsigned fewest_misses(const std::vector<PageId>& pages, std::size_t capacity) {
  std::map<std::set<PageId>, unsigned> best = {{{}, 0}};
  for (const PageId page : pages) {
    std::map<std::set<PageId>, unsigned> next;
    const auto reach = [&next](const std::set<PageId>& held, unsigned misses) {
      const auto [at, is_new] = next.emplace(held, misses);
      if (!is_new) at->second = std::min(at->second, misses);
    };
    for (const auto& [held, misses] : best) {
      std::set<PageId> with = held;
      if (!with.insert(page).second) {
        reach(held, misses);
      } else if (with.size() <= capacity) {
        reach(with, misses + 1);
      } else {
        for (const PageId gone : held) {
          std::set<PageId> rest = with;
          rest.erase(gone);
          reach(rest, misses + 1);
        }
      }
    }
    best = std::move(next);
  }
  unsigned fewest = UINT32_MAX;
  for (const auto& [held, misses] : best) fewest = std::min(fewest, misses);
  return fewest;
}

TEST(FarthestFuture, WithAllOfItKnownNothingMissesLess) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    RandomSource random(seed);
    const std::uint32_t capacity = 1 + random.below(4);
    std::vector<PageId> pages(5 + random.below(30));
    for (PageId& page : pages) page = static_cast<PageId>(random.below(7));
    FarthestFuture expert(capacity);
    for (const PageId page : pages) expert.expect(page);
    unsigned misses = 0;
    for (const PageId page : pages) misses += expert.reference(page) ? 0 : 1;
    ASSERT_EQ(misses, fewest_misses(pages, capacity)) << "seed " << seed;
    EXPECT_EQ(expert.known_ahead(), 0U);
  }
}

TEST(FarthestFuture, KnowsNoMoreThanItWasTold) {
  FarthestFuture expert(3);
  EXPECT_EQ(trace(expert, "abc"), "+++");
  for (const char letter : std::string("dcab")) expert.expect(static_cast<PageId>(letter));
  // a, b and c are all wanted again, b last; then a, which is not wanted any more.
  EXPECT_EQ(trace(expert, "dca"), "b..");
  expert.expect_nothing();
  EXPECT_EQ(trace(expert, "e"), "d") << "without a future, the longest unused";
}

// All of three pages are drawn, so the victim is the one of the lowest exact score.
TEST(SegmentScore, ThePageOfTheLowestScoreLeaves) {
  SegmentScore expert(3);
  // Time steps are one reference here. At d, a: 3 references of ages 7, 6, 2: the sum of
  // 2^(-age / 3), 1.08; b: ages 5, 4: 0.43; c: ages 3, 1: 1.06.
  EXPECT_EQ(trace(expert, "aabbcac"), "+.+.+..");
  EXPECT_EQ(trace(expert, "d"), "b");
}

}  // namespace
}  // namespace cairn
