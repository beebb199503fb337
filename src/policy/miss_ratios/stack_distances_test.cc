// SPDX-License-Identifier: Apache-2.0
// Stack distances by hand, and against a stack that is looked through, on random references with
// printed seeds; the table and the time line that they stand on.
#include "policy/miss_ratios/stack_distances.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random_source.h"

namespace cairn {
namespace {

constexpr std::uint64_t kCold = StackDistances::kCold;

// All pages, the one used last at the front.
class NaiveStack {
 public:
  std::uint64_t reference(std::uint64_t key) {
    const auto found = std::find(stack_.begin(), stack_.end(), key);
    const std::uint64_t distance =
        found == stack_.end() ? kCold : static_cast<std::uint64_t>(found - stack_.begin()) + 1;
    forget(key);
    stack_.insert(stack_.begin(), key);
    return distance;
  }
  void forget(std::uint64_t key) { std::erase(stack_, key); }
  std::size_t size() const { return stack_.size(); }

 private:
  std::vector<std::uint64_t> stack_;
};

TEST(StackDistances, CountsThePagesSinceTheLastUse) {
  StackDistances distances;
  EXPECT_EQ(distances.reference(7), kCold);
  EXPECT_EQ(distances.reference(7), 1U) << "nothing in between";
  EXPECT_EQ(distances.reference(8), kCold);
  EXPECT_EQ(distances.reference(9), kCold);
  EXPECT_EQ(distances.reference(8), 2U);
  EXPECT_EQ(distances.reference(7), 3U) << "8 was used twice and counts once";
  EXPECT_EQ(distances.size(), 3U);
}

TEST(StackDistances, TakesAnyKey) {
  StackDistances distances;
  EXPECT_EQ(distances.reference(0), kCold);
  EXPECT_EQ(distances.reference(UINT64_MAX), kCold);
  EXPECT_EQ(distances.reference(0), 2U);
}

TEST(StackDistances, AgreesWithAStackLookedThrough) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomSource random(seed);
    const std::uint32_t pages = 1 + random.below(400);
    const std::uint64_t stride = 1 + random.below(1 << 30);
    const std::uint32_t forgets = random.below(3) == 0 ? 20 : 0;  // of a hundred
    StackDistances distances;
    NaiveStack stack;
    for (int turn = 0; turn < 6000; ++turn) {
      const std::uint64_t key = random.below(1 + random.below(pages)) * stride;
      if (random.below(100) < forgets) {
        distances.forget(key);
        stack.forget(key);
      } else {
        ASSERT_EQ(distances.reference(key), stack.reference(key)) << "turn " << turn;
      }
      ASSERT_EQ(distances.size(), stack.size());
    }
  }
}

// Far more references than the time line has room for.
TEST(StackDistances, MemoryIsInProportionToThePages) {
  StackDistances distances;
  constexpr std::uint64_t kPages = 3000;
  for (std::uint64_t turn = 0; turn < kPages * 100; ++turn) {
    const std::uint64_t distance = distances.reference(turn % kPages);
    ASSERT_EQ(distance, turn < kPages ? kCold : kPages);
  }
  EXPECT_LT(distances.memory_bytes(), kPages * 60);
}

TEST(StackDistances, CountsUses) {
  StackDistances distances;
  for (const std::uint64_t key : {5U, 6U, 5U, 5U}) (void)distances.reference(key);
  std::vector<std::uint32_t> uses = distances.all_uses();
  std::sort(uses.begin(), uses.end());
  EXPECT_EQ(uses, (std::vector<std::uint32_t>{1, 3}));
  distances.forget(5);
  EXPECT_EQ(distances.all_uses(), std::vector<std::uint32_t>{1});
}

TEST(PageTable, AgreesWithAMap) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomSource random(seed);
    PageTable table;
    std::map<std::uint64_t, std::uint32_t> model;
    for (int turn = 0; turn < 5000; ++turn) {
      const std::uint64_t key = std::uint64_t{random.below(200)} << (seed * 3);
      if (random.below(3) == 0) {
        ASSERT_EQ(table.erase(key).uses, model.contains(key) ? model[key] : 0);
        model.erase(key);
      } else {
        ASSERT_EQ(table.use(key).uses, ++model[key]);
      }
      ASSERT_EQ(table.size(), model.size());
      ASSERT_EQ(table.find(key) != nullptr, model.contains(key));
    }
    for (const auto& [key, uses] : model) ASSERT_EQ(table.find(key)->uses, uses);
  }
}

TEST(MarkedTimes, CountsMarksBeforeAnyMoment) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    RandomSource random(seed);
    const std::uint32_t marked = random.below(300);
    MarkedTimes times;
    times.reset(1000, marked);
    std::vector<bool> model(times.length(), false);
    std::fill_n(model.begin(), marked, true);
    for (std::uint32_t now = marked; now < 1000; now += 1 + random.below(100)) {
      times.mark(now);
      model[now] = true;
      const std::uint32_t other = random.below(now + 1);
      if (times.is_marked(other)) times.clear(other);
      model[other] = false;
      const std::vector<std::uint32_t> words = times.marked_before_words();
      for (std::uint32_t at = 0; at < times.length(); ++at) {
        const auto count = std::count(model.begin(), model.begin() + at, true);
        ASSERT_EQ(times.marked_before(at), count) << at;
        ASSERT_EQ(times.marked_before(at, words), count) << at;
      }
    }
  }
}

}  // namespace
}  // namespace cairn
