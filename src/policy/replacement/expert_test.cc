// SPDX-License-Identifier: Apache-2.0
// What holds for every expert of the table, on random references with printed seeds.
#include "policy/replacement/expert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/random_source.h"
#include "policy/replacement/compared_experts.h"

namespace cairn {
namespace {

constexpr std::uint32_t kPages = 200;

// Loops, scans, popular pages and noise, by turns.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : random_(seed) {}
  PageId next() {
    if (left_ == 0) {
      kind_ = random_.below(4);
      left_ = 1 + random_.below(300);
      first_ = random_.below(kPages);
      length_ = 1 + random_.below(kPages);
    }
    --left_;
    switch (kind_) {
      case 0:
        return static_cast<PageId>((first_ + left_ % length_) % kPages);
      case 1:
        return static_cast<PageId>(first_++ % kPages);
      case 2:
        return static_cast<PageId>(random_.below(1 + random_.below(1 + random_.below(kPages))));
      default:
        return static_cast<PageId>(random_.below(kPages));
    }
  }

 private:
  RandomSource random_;
  std::uint32_t kind_ = 0;
  std::uint32_t left_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t length_ = 1;
};

std::vector<PageId> held_by(const Expert& expert) {
  std::vector<PageId> held;
  for (std::uint32_t page = 0; page < kPages; ++page) {
    if (expert.holds(static_cast<PageId>(page))) held.push_back(static_cast<PageId>(page));
  }
  return held;
}

class ExpertConformance : public ::testing::TestWithParam<ExpertMaker> {
 protected:
  std::unique_ptr<Expert> make(std::uint32_t capacity) const { return GetParam().make(capacity); }
};

TEST_P(ExpertConformance, IsFoundByItsName) {
  const auto expert = make_compared_expert(GetParam().name, 5);
  ASSERT_NE(expert, nullptr);
  EXPECT_STREQ(expert->name(), GetParam().name);
  EXPECT_EQ(expert->capacity(), 5U);
  EXPECT_EQ(make_compared_expert("none", 5), nullptr);
}

// After every reference the directory is the one before, less what left, with what was asked for.
TEST_P(ExpertConformance, HoldsWhatItSaysAndNoMoreThanItsCapacity) {
  for (const std::uint32_t capacity : {1U, 2U, 3U, 8U, 64U}) {
    const auto expert = make(capacity);
    Stream stream(capacity);
    std::vector<PageId> expected;
    for (int turn = 0; turn < 3000; ++turn) {
      const PageId page = stream.next();
      const bool was_held = expert->holds(page);
      ASSERT_EQ(expert->reference(page), was_held) << "capacity " << capacity << ", " << turn;
      for (const PageId gone : expert->evicted()) {
        ASSERT_EQ(std::erase(expected, gone), 1U) << "it was not there";
      }
      if (!was_held && expert->holds(page)) expected.push_back(page);
      std::sort(expected.begin(), expected.end());
      ASSERT_EQ(held_by(*expert), expected) << "capacity " << capacity << ", " << turn;
      ASSERT_LE(expected.size(), capacity);
    }
    EXPECT_EQ(expected.size(), capacity) << "room that is never used";
  }
}

TEST_P(ExpertConformance, AgreesWithItsTwin) {
  const auto one = make(16);
  const auto other = make(16);
  Stream stream(7);
  for (int turn = 0; turn < 5000; ++turn) {
    const PageId page = stream.next();
    ASSERT_EQ(one->reference(page), other->reference(page)) << turn;
    ASSERT_TRUE(std::equal(one->evicted().begin(), one->evicted().end(), other->evicted().begin(),
                           other->evicted().end()));
  }
}

TEST_P(ExpertConformance, ForgetsPagesThatAreNoMore) {
  for (const std::uint32_t capacity : {1U, 4U, 32U}) {
    const auto expert = make(capacity);
    Stream stream(capacity + 100);
    RandomSource random(3);
    for (int turn = 0; turn < 5000; ++turn) {
      const PageId page = stream.next();
      if (random.below(3) == 0) {
        const std::size_t before = held_by(*expert).size();
        const bool was_held = expert->holds(page);
        expert->forget(page);
        ASSERT_FALSE(expert->holds(page));
        ASSERT_FALSE(expert->remembers(page));
        ASSERT_EQ(held_by(*expert).size(), before - (was_held ? 1 : 0)) << "another one went too";
      } else {
        (void)expert->reference(page);
        ASSERT_TRUE(expert->holds(page)) << "it has just been asked for";
      }
      for (const PageId held : held_by(*expert)) ASSERT_TRUE(expert->remembers(held));
    }
  }
}

// With numbers used again as soon as nobody remembers them, a stream of ever new pages needs no
// more numbers than the expert remembers pages.
TEST_P(ExpertConformance, RemembersABoundedNumberOfPages) {
  constexpr std::uint32_t kCapacity = 16;
  const auto expert = make(kCapacity);
  std::vector<PageId> in_use;
  std::vector<PageId> free;
  std::uint32_t numbers = 0;
  for (int turn = 0; turn < 60'000; ++turn) {
    if (free.empty() && turn % 512 == 0) {
      std::erase_if(in_use, [&](PageId page) {
        if (expert->remembers(page)) return false;
        free.push_back(page);
        return true;
      });
    }
    if (free.empty()) free.push_back(static_cast<PageId>(numbers++));
    (void)expert->reference(free.back());
    in_use.push_back(free.back());
    free.pop_back();
  }
  EXPECT_LE(numbers, 4 * 64 * kCapacity);
}

std::string test_name(const ::testing::TestParamInfo<ExpertMaker>& instance) {
  std::string name = instance.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Chosen, ExpertConformance, ::testing::ValuesIn(kExpertMakers), test_name);
INSTANTIATE_TEST_SUITE_P(Compared, ExpertConformance, ::testing::ValuesIn(kComparedExpertMakers),
                         test_name);

}  // namespace
}  // namespace cairn
