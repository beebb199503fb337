// SPDX-License-Identifier: Apache-2.0
#include "cli/trace/miss_estimate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "cli/trace/testing/listed_events.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint32_t kPage = 4096;

TraceEvent access(TraceKind kind, std::uint32_t file, std::uint64_t page, std::uint32_t pages = 1) {
  TraceEvent event;
  event.kind = kind;
  event.file = file;
  event.offset = page * kPage;
  event.length = pages * kPage;
  return event;
}

std::vector<TraceEvent> loops_over(std::uint64_t pages, int rounds) {
  std::vector<TraceEvent> events;
  for (int round = 0; round < rounds; ++round) {
    for (std::uint64_t page = 0; page < pages; ++page)
      events.push_back(access(TraceKind::kReadMiss, 0, page));
  }
  return events;
}

Result<MissEstimate> estimate(std::vector<TraceEvent> events,
                              std::vector<std::string> experts = {}) {
  ListedEvents trace(std::move(events));
  return estimate_misses(trace, {kPage, std::move(experts)});
}

// LRU has no hit in a loop before all of it fits; the best possible has some in every cache.
TEST(MissEstimate, ALoopFitsOrMissesUnderLru) {
  const auto found = estimate(loops_over(100, 4));
  ASSERT_TRUE(found);
  const MissEstimate& loop = found.value();
  EXPECT_EQ(loop.references, 400U);
  EXPECT_EQ(loop.simulated_references, 400U);
  EXPECT_DOUBLE_EQ(loop.pages, 100);
  EXPECT_DOUBLE_EQ(loop.sampled_share, 1);
  EXPECT_THAT(loop.capacities, ElementsAre(1, 2, 4, 8, 16, 32, 64, 100));
  EXPECT_DOUBLE_EQ(loop.lru.at(64), 1);
  EXPECT_DOUBLE_EQ(loop.lru.at(100), 0.25);
  EXPECT_DOUBLE_EQ(loop.lru.compulsory_ratio(), 0.25);
  ASSERT_TRUE(loop.lru.knee());
  EXPECT_EQ(loop.lru.knee()->capacity, 100U);
  ASSERT_EQ(loop.others.size(), 1U);
  EXPECT_EQ(loop.others[0].name, kBestPossible);
  EXPECT_LT(loop.others[0].curve.at(64), 0.6);
  EXPECT_DOUBLE_EQ(loop.others[0].curve.at(100), 0.25);
}

TEST(MissEstimate, TheLastCacheHoldsASampledLoop) {
  constexpr std::uint32_t kPages = 60'000;
  const auto found = estimate(loops_over(kPages, 3), {});
  ASSERT_TRUE(found);
  ASSERT_LT(found.value().sampled_share, 1.0);
  const MissRatioCurve& lru = found.value().lru;
  EXPECT_DOUBLE_EQ(lru.at(found.value().capacities.back()), lru.compulsory_ratio());
}

TEST(MissEstimate, ExpertsStandInTheOrderOfTheirNames) {
  const auto found = estimate(loops_over(64, 3), {"s3-fifo", "mru"});
  ASSERT_TRUE(found);
  ASSERT_EQ(found.value().others.size(), 3U);
  EXPECT_EQ(found.value().others[0].name, "s3-fifo");
  EXPECT_EQ(found.value().others[1].name, "mru");
  const double best = found.value().others[2].curve.at(32);
  EXPECT_LE(best, found.value().others[1].curve.at(32));
  EXPECT_LT(found.value().others[1].curve.at(32), found.value().lru.at(32));
}

TEST(MissEstimate, OnlyReadsAndWritesAreReferencesAndPiecesOfAPageAreOne) {
  TraceEvent second_half = access(TraceKind::kReadHit, 0, 0);
  second_half.offset += kPage / 2;
  second_half.length = kPage / 2;
  const auto found =
      estimate({access(TraceKind::kOpen, 0, 9), access(TraceKind::kReadMiss, 0, 0), second_half,
                access(TraceKind::kWrite, 1, 0, 3), access(TraceKind::kClose, 0, 7)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value().references, 4U);
  EXPECT_DOUBLE_EQ(found.value().pages, 4);
}

TEST(MissEstimate, OfNothingThereIsNothing) {
  const auto found = estimate({access(TraceKind::kOpen, 0, 0)});
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value().references, 0U);
  EXPECT_TRUE(found.value().capacities.empty());
  EXPECT_TRUE(found.value().lru.is_empty());
}

TEST(MissEstimate, WhatIsWrongIsSaid) {
  const auto unknown = estimate(loops_over(2, 1), {"clairvoyant"});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.status().message(), HasSubstr("clairvoyant"));
  ListedEvents damaged(loops_over(2, 1), {}, Status(StatusCode::kInvalid, "block 7 is damaged"));
  const auto broken = estimate_misses(damaged, {kPage, {}});
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.status().message(), HasSubstr("block 7"));
}

}  // namespace
}  // namespace cairn::cli
