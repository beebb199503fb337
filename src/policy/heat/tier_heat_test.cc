// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/tier_heat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <string>

#include "policy/heat/heat_trigger.h"

namespace cairn {
namespace {

constexpr TierId kRam = TierId::kMemory;
constexpr auto kNvme = static_cast<TierId>(1);
constexpr auto kDisk = static_cast<TierId>(2);

SegmentKey unit(std::uint32_t number) { return {static_cast<ObjectIndex>(1), number}; }

// A segment of one byte unless said otherwise, that does not fade.
ChangedSegment heated(std::uint32_t number, double logarithm, std::uint64_t bytes = 1) {
  return {unit(number), {logarithm, 0}, bytes};
}

std::vector<HeatMove> place_all(TierHeat& tiers, const std::vector<ChangedSegment>& changed,
                                double time = 0) {
  return tiers.place(changed, time);
}

// "3: - > 1" for each move, '-' for the backing store.
std::string text_of(const std::vector<HeatMove>& moves) {
  const auto tier_text = [](const std::optional<TierId>& tier) {
    return tier ? std::to_string(raw(*tier)) : "-";
  };
  std::string text;
  for (const HeatMove& move : moves) {
    if (!text.empty()) text += ", ";
    text +=
        std::to_string(move.key.segment) + ": " + tier_text(move.from) + " > " + tier_text(move.to);
  }
  return text;
}

TEST(TierHeat, TheHottestComeIntoTheFastestTierThatHasRoom) {
  TierHeat tiers(std::array<std::uint64_t, 2>{2, 2});
  const auto moves =
      place_all(tiers, {heated(1, 1), heated(2, 2), heated(3, 3), heated(4, 4), heated(5, 5)});
  EXPECT_EQ(text_of(moves), "5: - > 0, 4: - > 0, 3: - > 1, 2: - > 1");
  EXPECT_EQ(tiers.tier_of(unit(1)), std::nullopt) << "no tier has room for the coldest";
  EXPECT_EQ(tiers.minimum(kRam, 0), 4);
  EXPECT_EQ(tiers.maximum(kRam, 0), 5);
  EXPECT_EQ(tiers.minimum(kNvme, 0), 2);
  EXPECT_EQ(tiers.maximum(kNvme, 0), 3);
  EXPECT_EQ(tiers.used_bytes(kRam), 2U);
}

TEST(TierHeat, AHotterSegmentDemotesTheColdestAndThatCascades) {
  TierHeat tiers(std::array<std::uint64_t, 3>{1, 1, 1});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2), heated(1, 1)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(9, 9)})), "1: 2 > -, 2: 1 > 2, 3: 0 > 1, 9: - > 0");
  EXPECT_EQ(tiers.tier_of(unit(1)), std::nullopt);
  EXPECT_EQ(tiers.tier_of(unit(2)), kDisk);
}

TEST(TierHeat, TheCascadeStopsWhereThereIsRoom) {
  TierHeat tiers(std::array<std::uint64_t, 3>{1, 2, 1});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(9, 9)})), "3: 0 > 1, 9: - > 0");
  EXPECT_EQ(tiers.used_bytes(kDisk), 0U);
}

TEST(TierHeat, ASegmentBetweenTheTiersScoresGoesBetween) {
  TierHeat tiers(std::array<std::uint64_t, 2>{1, 1});
  (void)place_all(tiers, {heated(5, 5), heated(2, 2)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(3, 3)})), "2: 1 > -, 3: - > 1");
  EXPECT_EQ(text_of(place_all(tiers, {heated(1, 1)})), "");
}

TEST(TierHeat, WhatIsHeatedIsPromotedAndWhatCoolsDownIsDemoted) {
  TierHeat tiers(std::array<std::uint64_t, 2>{1, 2});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2), heated(1, 1)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(1, 4)})), "3: 0 > 1, 1: 1 > 0");
  EXPECT_EQ(text_of(place_all(tiers, {heated(1, 0)})), "1: 0 > 1, 3: 1 > 0");
  EXPECT_EQ(text_of(place_all(tiers, {heated(1, 0.5)})), "") << "it stays where it is";
}

TEST(TierHeat, EqualScoresDisplaceNothing) {
  TierHeat tiers(std::array<std::uint64_t, 1>{1});
  (void)place_all(tiers, {heated(1, 1)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(2, 1)})), "");
  EXPECT_EQ(tiers.tier_of(unit(1)), kRam);
}

TEST(TierHeat, OnlyAsManyAreDemotedAsHaveTo) {
  TierHeat tiers(std::array<std::uint64_t, 2>{6, 100});
  (void)place_all(tiers, {heated(4, 4, 2), heated(3, 3, 2), heated(2, 2, 1)});
  // One byte is free: the coldest and the next one make room for four.
  EXPECT_EQ(text_of(place_all(tiers, {heated(9, 9, 4)})), "2: 0 > 1, 3: 0 > 1, 9: - > 0");
  EXPECT_EQ(tiers.tier_of(unit(4)), kRam);
}

TEST(TierHeat, NothingIsDemotedForWhatWouldNotFitThen) {
  TierHeat tiers(std::array<std::uint64_t, 2>{4, 8});
  (void)place_all(tiers, {heated(5, 5, 3), heated(1, 1, 1)});
  EXPECT_EQ(text_of(place_all(tiers, {heated(4, 4, 2)})), "4: - > 1")
      << "only one byte of the first tier is colder";
  EXPECT_EQ(text_of(place_all(tiers, {heated(9, 9, 5)})), "9: - > 1") << "larger than the tier";
  EXPECT_EQ(text_of(place_all(tiers, {heated(8, 8, 9)})), "") << "larger than any";
}

TEST(TierHeat, RoomThatIsLeftBehindIsFilledFromBelow) {
  TierHeat tiers(std::array<std::uint64_t, 2>{1, 2});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2), heated(1, 1)});
  EXPECT_TRUE(tiers.remove(unit(3)));
  EXPECT_FALSE(tiers.remove(unit(3)));
  EXPECT_EQ(text_of(place_all(tiers, {})), "2: 1 > 0");
}

TEST(TierHeat, ScoresThatCrossWhileTheyFadeChangePlaces) {
  TierHeat tiers(std::array<std::uint64_t, 2>{1, 1});
  (void)tiers.place(std::vector<ChangedSegment>{{unit(1), {10, 1}, 1}, {unit(2), {5, 0.5}, 1}}, 0);
  EXPECT_EQ(text_of(tiers.place({}, 9)), "");
  EXPECT_EQ(text_of(tiers.place({}, 11)), "1: 0 > 1, 2: 1 > 0");
}

TEST(TierHeat, ColdAndEmptySegmentsLeave) {
  TierHeat tiers(std::array<std::uint64_t, 1>{4});
  (void)place_all(tiers, {heated(1, 1), heated(2, 2)});
  EXPECT_EQ(text_of(tiers.place(std::vector<ChangedSegment>{{unit(1), FadingScore{}, 1}}, 0)),
            "1: 0 > -");
  EXPECT_EQ(text_of(place_all(tiers, {heated(2, 2, 0)})), "2: 0 > -");
  EXPECT_EQ(tiers.used_bytes(kRam), 0U);
}

TEST(TierHeat, AMoveThatCameOutDifferentlyIsTakenIntoAccount) {
  TierHeat tiers(std::array<std::uint64_t, 2>{1, 2});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2)});
  tiers.relocate(unit(3), kNvme);
  EXPECT_EQ(tiers.tier_of(unit(3)), kNvme);
  EXPECT_EQ(text_of(place_all(tiers, {})), "3: 1 > 0") << "it is tried again";
  tiers.relocate(unit(3), std::nullopt);
  EXPECT_EQ(tiers.segment_count(), 1U);
  tiers.relocate(unit(7), kRam);
  EXPECT_EQ(tiers.segment_count(), 1U) << "of what is in no tier nothing is known";
}

TEST(TierHeat, WhatIsTooMuchLeavesWhenATierShrinks) {
  TierHeat tiers(std::array<std::uint64_t, 2>{3, 3});
  (void)place_all(tiers, {heated(3, 3), heated(2, 2), heated(1, 1)});
  tiers.set_capacities(std::array<std::uint64_t, 2>{1, 1});
  EXPECT_EQ(text_of(place_all(tiers, {})), "1: 0 > -, 2: 0 > 1");
}

TEST(TierHeat, FilesGo) {
  TierHeat tiers(std::array<std::uint64_t, 1>{9});
  (void)place_all(tiers, {heated(1, 1), heated(2, 2)});
  EXPECT_EQ(tiers.remove_object(static_cast<ObjectIndex>(2)), 0U);
  EXPECT_EQ(tiers.remove_object(static_cast<ObjectIndex>(1)), 2U);
  EXPECT_EQ(tiers.used_bytes(kRam), 0U);
  EXPECT_EQ(tiers.minimum(kRam, 0), std::nullopt);
  EXPECT_EQ(tiers.maximum(kRam, 0), std::nullopt);
}

TEST(TierHeat, WithoutTiersNothingMoves) {
  TierHeat tiers({});
  EXPECT_TRUE(place_all(tiers, {heated(1, 1)}).empty());
}

// Segments of one size are where a full sort would put them, whatever happened before.
TEST(TierHeat, SegmentsOfOneSizeEndSorted) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> capacities(1 + random() % 4);
    for (std::uint64_t& capacity : capacities) capacity = random() % 6;
    TierHeat tiers(capacities);
    for (int turn = 0; turn < 60; ++turn) {
      std::vector<ChangedSegment> changed(random() % 4);
      for (ChangedSegment& segment : changed) {
        segment =
            heated(static_cast<std::uint32_t>(random() % 25), static_cast<double>(random() % 1000));
        segment.score.rate = 0.1 * static_cast<double>(1 + random() % 3);
        segment.score.level += segment.score.rate * turn;
      }
      (void)tiers.place(changed, turn);
      for (std::size_t at = 0; at < capacities.size(); ++at) {
        const auto tier = static_cast<TierId>(at);
        ASSERT_LE(tiers.used_bytes(tier), capacities[at]) << "turn " << turn;
        for (std::size_t below = at + 1; below < capacities.size(); ++below) {
          const auto hottest = tiers.maximum(static_cast<TierId>(below), turn);
          if (!hottest) continue;
          ASSERT_EQ(tiers.used_bytes(tier), capacities[at]) << "turn " << turn;
          if (capacities[at] > 0) {
            ASSERT_GE(*tiers.minimum(tier, turn), *hottest) << "turn " << turn;
          }
        }
      }
    }
  }
}

// With segments of any sizes the moves lead from the old places to the new, and no tier holds more
// than it can.
TEST(TierHeat, MovesLeadToThePlaces) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    std::vector<std::uint64_t> capacities(1 + random() % 4);
    for (std::uint64_t& capacity : capacities) capacity = random() % 40;
    TierHeat tiers(capacities);
    std::map<SegmentKey, std::optional<TierId>> followed;
    for (int turn = 0; turn < 60; ++turn) {
      std::vector<ChangedSegment> changed(random() % 4);
      for (ChangedSegment& segment : changed) {
        segment = heated(static_cast<std::uint32_t>(random() % 25),
                         static_cast<double>(random() % 1000), random() % 12);
      }
      bool is_promoting = false;
      for (const HeatMove& move : tiers.place(changed, turn)) {
        ASSERT_EQ(followed[move.key], move.from) << "turn " << turn;
        ASSERT_NE(move.from, move.to);
        ASSERT_GT(move.bytes, 0U);
        ASSERT_TRUE(move.is_promotion() || !is_promoting) << "demotions come first";
        is_promoting = move.is_promotion();
        followed[move.key] = move.to;
      }
      std::size_t placed = 0;
      for (const auto& [key, tier] : followed) {
        ASSERT_EQ(tiers.tier_of(key), tier) << "turn " << turn;
        placed += tier.has_value();
      }
      ASSERT_EQ(tiers.segment_count(), placed);
      for (std::size_t at = 0; at < capacities.size(); ++at)
        ASSERT_LE(tiers.used_bytes(static_cast<TierId>(at)), capacities[at]);
    }
  }
}

TEST(HeatTrigger, IsDueAfterEnoughChanges) {
  HeatTrigger trigger({.interval_ns = 1000, .changes_max = 3}, 0);
  EXPECT_FALSE(trigger.is_due(0));
  trigger.note_changes(2);
  EXPECT_FALSE(trigger.is_due(999));
  trigger.note_changes(1);
  EXPECT_TRUE(trigger.is_due(0));
  trigger.reset(10);
  EXPECT_FALSE(trigger.is_due(10));
}

TEST(HeatTrigger, IsDueAfterTheIntervalIfAnythingChanged) {
  HeatTrigger trigger({.interval_ns = 1000, .changes_max = 100}, 0);
  EXPECT_FALSE(trigger.is_due(5000)) << "nothing changed";
  trigger.note_changes(1);
  EXPECT_FALSE(trigger.is_due(999));
  EXPECT_TRUE(trigger.is_due(1000));
  trigger.reset(1000);
  trigger.note_changes(1);
  EXPECT_FALSE(trigger.is_due(1999));
  EXPECT_TRUE(trigger.is_due(2000));
}

}  // namespace
}  // namespace cairn
