// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/file_heat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

namespace cairn {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::uint64_t kGranule = kBlockBytes;

HeatRange blocks(std::uint64_t first, std::uint64_t count = 1) {
  return {first * kGranule, count * kGranule};
}

TEST(FileHeat, AnAccessReferencesTheSegmentsItTouches) {
  FileHeat heat;
  heat.open(0);
  heat.access({kGranule - 1, 2}, 0);
  heat.access({2 * kGranule, 1}, 0);
  heat.access({5 * kGranule, 0}, 0);
  ASSERT_EQ(heat.segment_count(), 3U);
  for (std::uint32_t segment = 0; segment < 3; ++segment)
    EXPECT_EQ(heat.score(segment).references(), 1U) << segment;
  EXPECT_DOUBLE_EQ(heat.score_at(2, kSecondNs), 0.5) << "a step is a second";
  EXPECT_EQ(heat.file_bytes(), 2 * kGranule + 1);
}

TEST(FileHeat, SegmentsGrowWithTheFile) {
  FileHeat heat;
  heat.open(0);
  heat.resize(FileHeat::kSegmentsMax * kGranule);
  EXPECT_EQ(heat.segment_bytes(), kGranule);
  heat.access(blocks(0), 0);
  heat.access(blocks(1), 0);
  heat.access(blocks(2), 0);
  EXPECT_EQ(heat.take_changed(), (std::vector<std::uint32_t>{0, 1, 2}));
  heat.resize(FileHeat::kSegmentsMax * kGranule + 1);
  EXPECT_EQ(heat.segment_bytes(), 2 * kGranule);
  ASSERT_EQ(heat.segment_count(), 2U);
  EXPECT_EQ(heat.score(0).references(), 2U);
  EXPECT_EQ(heat.score(1).references(), 1U);
  EXPECT_DOUBLE_EQ(heat.score_at(0, 0), 2);
  EXPECT_EQ(heat.take_changed(), (std::vector<std::uint32_t>{0, 1})) << "their numbers are others";
  EXPECT_TRUE(heat.take_changed().empty());
}

TEST(FileHeat, WhereverAFileIsAccessedThereAreNotTooManySegments) {
  FileHeat heat;
  heat.open(0);
  heat.access({kOffsetMax - 1, 100}, 0);
  EXPECT_EQ(heat.segment_shift(), FileHeat::kSegmentShiftMax);
  EXPECT_EQ(heat.segment_count(), FileHeat::kSegmentsMax);
  heat.access({kOffsetMax, 1}, 0);
  heat.access({UINT64_MAX, UINT64_MAX}, 0);
  heat.access({0, UINT64_MAX}, 0);
  EXPECT_EQ(heat.segment_count(), FileHeat::kSegmentsMax);
  EXPECT_EQ(heat.score(0).references(), 1U);
  EXPECT_EQ(heat.score(FileHeat::kSegmentsMax - 1).references(), 2U);
  EXPECT_LE(heat.memory_bytes(), FileHeat::kMemoryBytesMax);
}

TEST(FileHeat, GrownSegmentsHaveTheSumsOfAllTheirAccesses) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    FileHeat heat;
    heat.open(0);
    std::vector<std::pair<std::uint64_t, double>> accesses;  // block, seconds
    std::uint64_t reach = 200;
    for (int at = 0; at < 3000; ++at) {
      if (at % 500 == 499) reach *= 7;
      const std::uint64_t block = random() % (random() % reach + 1);
      heat.access(blocks(block), at * kSecondNs / 10);
      accesses.emplace_back(block, 0.1 * at);
    }
    EXPECT_GT(heat.segment_shift(), 0U);
    std::vector<std::vector<double>> times(heat.segment_count());
    for (const auto& [block, time] : accesses) times[block >> heat.segment_shift()].push_back(time);
    for (std::uint32_t segment = 0; segment < heat.segment_count(); ++segment) {
      double exact = 0;
      for (const double time : times[segment])
        exact += std::pow(0.5, (300 - time) / static_cast<double>(times[segment].size()));
      ASSERT_EQ(heat.score(segment).references(), times[segment].size()) << segment;
      const double score = heat.score_at(segment, 300 * kSecondNs);
      ASSERT_LE(score, exact * (1 + 1e-9)) << segment;
      ASSERT_GE(score * std::exp(heat.score(segment).error_max()), exact * (1 - 1e-9)) << segment;
    }
    EXPECT_LE(heat.memory_bytes(), FileHeat::kMemoryBytesMax);
  }
}

TEST(FileHeat, AnEpochLastsFromTheFirstOpenToTheLastClose) {
  FileHeat heat;
  EXPECT_FALSE(heat.close(0)) << "nobody has it open";
  heat.open(0);
  heat.open(1, 2);
  EXPECT_EQ(heat.openers(), 3U);
  EXPECT_EQ(heat.epochs(), 1U);
  EXPECT_FALSE(heat.close(2));
  EXPECT_TRUE(heat.close(3, 2)) << "a process that had it open twice died";
  heat.open(4);
  EXPECT_EQ(heat.epochs(), 2U);
  EXPECT_TRUE(heat.close(5, 100)) << "more than have it open is all of them";
  EXPECT_EQ(heat.openers(), 0U);
}

TEST(FileHeat, TheClockStandsWhileNobodyHasItOpenAndTheOldMapWeighsHalf) {
  FileHeat heat;
  heat.open(0);
  heat.access(blocks(0), kSecondNs);
  heat.access(blocks(0), 2 * kSecondNs);
  EXPECT_TRUE(heat.close(4 * kSecondNs));
  // Two references: (1/2)^(3/2) + (1/2)^(2/2).
  const double at_close = std::pow(0.5, 1.5) + 0.5;
  EXPECT_NEAR(heat.score_at(0, 4 * kSecondNs), at_close, 1e-12);
  EXPECT_NEAR(heat.score_at(0, 1000 * kSecondNs), at_close, 1e-12);
  heat.open(1000 * kSecondNs);
  EXPECT_NEAR(heat.score_at(0, 1000 * kSecondNs), at_close / 2, 1e-9);
  heat.access(blocks(1), 1000 * kSecondNs);
  EXPECT_TRUE(heat.close(1000 * kSecondNs));
  heat.open(5000 * kSecondNs);
  EXPECT_NEAR(heat.score_at(0, 5000 * kSecondNs), at_close / 4, 1e-9);
  EXPECT_NEAR(heat.score_at(1, 5000 * kSecondNs), 0.5, 1e-9);
}

TEST(FileHeat, ASavedMapGoesOnAsIfItHadStayed) {
  FileHeat stayed;
  stayed.open(0);
  for (int at = 0; at < 500; ++at) stayed.access(blocks(at * at % 37), at * kSecondNs / 4);
  EXPECT_TRUE(stayed.close(200 * kSecondNs));
  FileHeat loaded;
  ASSERT_TRUE(loaded.restore(stayed.state()));
  for (FileHeat* heat : {&stayed, &loaded}) {
    heat->open(900 * kSecondNs);
    heat->access(blocks(3), 901 * kSecondNs);
  }
  EXPECT_EQ(loaded.epochs(), 2U);
  EXPECT_EQ(loaded.file_bytes(), stayed.file_bytes());
  ASSERT_EQ(loaded.segment_count(), stayed.segment_count());
  for (std::uint32_t segment = 0; segment < loaded.segment_count(); ++segment)
    EXPECT_EQ(loaded.score_at(segment, 902 * kSecondNs), stayed.score_at(segment, 902 * kSecondNs));
}

TEST(FileHeat, TheMapOfAnOpenFileIsThatOfItsLastAccess) {
  FileHeat heat;
  heat.open(0);
  EXPECT_TRUE(heat.close(5 * kSecondNs));
  heat.open(100 * kSecondNs);
  heat.access(blocks(0), 103 * kSecondNs);
  EXPECT_EQ(heat.state().closed_ns, 103 * kSecondNs);
  FileHeat loaded;
  ASSERT_TRUE(loaded.restore(heat.state()));
  loaded.open(1000 * kSecondNs);
  EXPECT_NEAR(loaded.score_at(0, 1000 * kSecondNs), 0.5, 1e-9) << "not hotter than it ever was";
  EXPECT_TRUE(heat.close(104 * kSecondNs));
  EXPECT_EQ(heat.state().closed_ns, 104 * kSecondNs);
}

TEST(FileHeat, RestoresNothingThatIsNoMap) {
  FileHeat heat;
  FileHeat::State state = heat.state();
  state.segment_shift = FileHeat::kSegmentShiftMax + 1;
  EXPECT_FALSE(heat.restore(state));
  state = heat.state();
  state.scores.resize(FileHeat::kSegmentsMax + 1);
  EXPECT_FALSE(heat.restore(state));
  state = heat.state();
  state.pace.step_ns *= 2;
  EXPECT_FALSE(heat.restore(state));
  heat.open(0);
  EXPECT_FALSE(heat.restore(heat.state())) << "somebody has it open";
}

TEST(FileHeat, AnUpdateNamesWhatWasFetchedAheadOnce) {
  FileHeat heat;
  heat.open(0);
  heat.access(blocks(0, 10), 0);
  heat.mark_fetched(blocks(1, 3));
  heat.mark_fetched(blocks(6));
  EXPECT_TRUE(heat.update({0, kGranule}).empty());
  EXPECT_EQ(heat.update({3 * kGranule + 5, 1}), (std::vector<HeatRange>{blocks(3)}));
  EXPECT_EQ(heat.update(), (std::vector<HeatRange>{blocks(1, 2), blocks(6)}));
  EXPECT_TRUE(heat.update().empty());
  EXPECT_TRUE(heat.update({kOffsetMax, 1}).empty());
  EXPECT_TRUE(heat.update({0, 0}).empty());
  EXPECT_DOUBLE_EQ(heat.score_at(3, 0), 1) << "its heat stays";
}

TEST(FileHeat, WhatIsPartlyFetchedIsDroppedWhole) {
  FileHeat heat;
  heat.open(0);
  heat.mark_fetched(blocks(0));
  heat.mark_fetched(blocks(5));
  heat.resize((FileHeat::kSegmentsMax + 1) * kGranule);
  EXPECT_EQ(heat.update(blocks(1)), (std::vector<HeatRange>{blocks(0, 2)}));
  EXPECT_EQ(heat.update(blocks(4)), (std::vector<HeatRange>{blocks(4, 2)}));
}

TEST(FileHeat, WhatIsCutOffIsForgotten) {
  FileHeat heat;
  heat.open(0);
  heat.access(blocks(0, 10), 0);
  heat.resize(4 * kGranule + 1);
  EXPECT_EQ(heat.segment_count(), 5U);
  heat.resize(0);
  EXPECT_EQ(heat.segment_count(), 0U);
  heat.access(blocks(1), 0);
  EXPECT_TRUE(heat.score(0).is_cold());
  EXPECT_EQ(heat.score(1).references(), 1U);
}

TEST(FileHeat, ASmallFileTakesLittle) {
  FileHeat heat;
  heat.open(0);
  for (int at = 0; at < 10'000; ++at) heat.access({0, 4096}, at);
  EXPECT_LE(heat.memory_bytes(), 512U);
}

}  // namespace
}  // namespace cairn
