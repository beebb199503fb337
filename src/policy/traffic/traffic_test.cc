// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "policy/traffic/independent_traffic.h"
#include "policy/traffic/poisson_traffic.h"
#include "policy/traffic/random_numbers.h"

namespace cairn {
namespace {

std::vector<PageUse> uses_of(PoissonTraffic traffic, int count) {
  std::vector<PageUse> uses;
  while (static_cast<int>(uses.size()) < count) uses.push_back(traffic.next());
  return uses;
}

std::vector<PageUse> uses_of(IndependentTraffic traffic, int most) {
  std::vector<PageUse> uses;
  while (static_cast<int>(uses.size()) < most) {
    const auto use = traffic.next();
    if (!use) break;
    uses.push_back(*use);
  }
  return uses;
}

std::map<std::uint64_t, int> counts_of(const std::vector<PageUse>& uses) {
  std::map<std::uint64_t, int> counts;
  for (const PageUse& use : uses) ++counts[use.page];
  return counts;
}

TEST(RandomNumbers, HaveTheMeansAndVariancesOfTheirDistributions) {
  constexpr int kDraws = 200'000;
  for (const double mean : {0.5, 8.0, 31.0, 33.0, 500.0}) {
    RandomSource source(11);
    double sum = 0;
    double squares = 0;
    for (int draw = 0; draw < kDraws; ++draw) {
      const auto number = static_cast<double>(poisson_number(source, mean));
      sum += number;
      squares += number * number;
    }
    const double found = sum / kDraws;
    EXPECT_NEAR(found, mean, 5 * std::sqrt(mean / kDraws));
    EXPECT_NEAR(squares / kDraws - found * found, mean, 0.02 * mean + 0.02);
  }
  RandomSource source(12);
  double sum = 0;
  for (int draw = 0; draw < kDraws; ++draw) sum += exponential_number(source, 20);
  EXPECT_NEAR(sum / kDraws, 20, 0.25);
  EXPECT_EQ(poisson_number(source, 0), 0U);
}

TEST(PoissonTraffic, ComesInOrderAndIsTheSameForASeed) {
  const auto uses = uses_of(PoissonTraffic({}, 5), 20'000);
  EXPECT_EQ(uses, uses_of(PoissonTraffic({}, 5), 20'000));
  EXPECT_NE(uses, uses_of(PoissonTraffic({}, 6), 20'000));
  std::uint64_t next = 0;
  std::set<std::uint64_t> seen;
  for (std::size_t at = 0; at < uses.size(); ++at) {
    ASSERT_GE(uses[at].time, uses[at == 0 ? 0 : at - 1].time);
    if (seen.insert(uses[at].page).second) {
      ASSERT_EQ(uses[at].page, next++);
    }
  }
}

TEST(PoissonTraffic, PagesAreUsedAsOftenAndLiveAsLongAsItsShapeSays) {
  constexpr std::uint64_t kPages = 20'000;
  for (const PoissonTrafficShape shape : {PoissonTrafficShape{8, 20}, {2, 100}, {0, 1}}) {
    PoissonTraffic traffic(shape, 7);
    std::map<std::uint64_t, double> came;
    double uses = 0;
    double repeats = 0;
    double ages = 0;
    double end = 0;
    // The first pages, until none of their uses is left but one in millions.
    for (PageUse use = traffic.next(); use.page < kPages + 20 * shape.lifetime;
         use = traffic.next()) {
      if (use.page >= kPages) continue;
      ++uses;
      end = use.time;
      const auto [first, is_first] = came.emplace(use.page, use.time);
      if (is_first) continue;
      ++repeats;
      ages += use.time - first->second;
    }
    EXPECT_NEAR(uses / kPages, 1 + shape.repeats, 0.03 * (1 + shape.repeats));
    if (repeats > 0) {
      EXPECT_NEAR(ages / repeats, shape.lifetime, 0.03 * shape.lifetime);
    }
    EXPECT_NEAR(came.rbegin()->second / kPages, 1, 0.03) << "pages come at rate 1 until " << end;
  }
}

TEST(IndependentTraffic, RanksAreDrawnByZipfsLaw) {
  const IndependentTrafficShape shape{.pages = 100, .alpha = 1, .uses = 1ULL << 40};
  constexpr int kUses = 200'000;
  const auto counts = counts_of(uses_of(IndependentTraffic(shape, 3), kUses));
  double harmonic = 0;
  for (int rank = 1; rank <= 100; ++rank) harmonic += 1.0 / rank;
  for (const int rank : {1, 2, 10, 100}) {
    const double expected = kUses / harmonic / rank;
    EXPECT_NEAR(counts.at(static_cast<std::uint64_t>(rank) - 1), expected, 6 * std::sqrt(expected));
  }
}

TEST(IndependentTraffic, APageExpiresAfterItsShare) {
  const IndependentTrafficShape shape{.pages = 50, .alpha = 0.8, .uses = 5000, .renews = false};
  const auto uses = uses_of(IndependentTraffic(shape, 3), 1'000'000);
  double total = 0;
  for (int rank = 1; rank <= 50; ++rank) total += std::pow(rank, -0.8);
  std::map<std::uint64_t, int> shares;
  for (int rank = 1; rank <= 50; ++rank)
    shares[static_cast<std::uint64_t>(rank) - 1] =
        static_cast<int>(std::ceil(5000 * std::pow(rank, -0.8) / total));
  EXPECT_EQ(counts_of(uses), shares) << "each has its share, and then it ends";
}

TEST(IndependentTraffic, ANewPageTakesTheRankOfOneThatHasExpired) {
  const IndependentTrafficShape shape{.pages = 50, .alpha = 0.8, .uses = 500};
  const auto uses = uses_of(IndependentTraffic(shape, 3), 20'000);
  ASSERT_EQ(uses.size(), 20'000U);
  const auto counts = counts_of(uses);
  EXPECT_GT(counts.size(), 1000U);
  EXPECT_LT(counts.rbegin()->first, counts.size() + 50) << "numbers wait for their first use only";
  const auto most = std::ranges::max_element(
      counts, {}, [](const std::pair<const std::uint64_t, int>& count) { return count.second; });
  EXPECT_LE(most->second, counts.at(0)) << "nobody is used more often than the first rank";
}

// Ranks so rare that a double does not notice them beside the first are used when it is gone.
TEST(IndependentTraffic, TheRarestHaveTheirUsesInTheEnd) {
  const IndependentTrafficShape shape{.pages = 1000, .alpha = 9, .uses = 2000, .renews = false};
  EXPECT_EQ(counts_of(uses_of(IndependentTraffic(shape, 3), 100'000)).size(), 1000U);
}

}  // namespace
}  // namespace cairn
