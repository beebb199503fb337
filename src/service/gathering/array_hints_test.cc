// SPDX-License-Identifier: Apache-2.0
#include "service/gathering/array_hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cairn::node {
namespace {

using arrays::Coordinates;
using arrays::DatasetNews;
using arrays::LeftReason;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

arrays::ArrayHint hint(const std::string& text) { return *arrays::parse_array_hint(text); }

DatasetNews dataset(const std::string& name = "/x", Coordinates shape = {64, 64}) {
  DatasetNews news;
  news.name = name;
  news.layout = arrays::Layout::kContiguous;
  news.shape = shape;
  news.cell_bytes = 1 << 16;
  return news;
}

TEST(ArrayHints, GiveADatasetItsGrid) {
  ArrayHints hints;
  EXPECT_TRUE(hints.is_empty());
  ASSERT_TRUE(hints.add(3, hint("/data/a.h5:/x chunk=[16,8] ghost=[2,1]")));
  const auto grid = hints.grid_for(3, "/data/a.h5", dataset());
  ASSERT_TRUE(grid);
  EXPECT_EQ(grid->shape().chunk, (Coordinates{16, 8}));
  EXPECT_EQ(grid->shape().ghost.before, (Coordinates{2, 1}));
  EXPECT_THAT(hints.complaints_of(3), IsEmpty());
  EXPECT_FALSE(hints.grid_for(4, "/data/a.h5", dataset())) << "another run";
  EXPECT_FALSE(hints.grid_for(3, "/data/b.h5", dataset()));
  EXPECT_FALSE(hints.grid_for(3, "/data/a.h5", dataset("/y")));
  hints.end_run(3);
  EXPECT_TRUE(hints.is_empty());
}

// protocol::ArrayNewsMessage has the end of its name.
TEST(ArrayHints, ADatasetWithALongNameIsMeant) {
  const std::string path = "/" + std::string(200, 'g') + "/density";
  ArrayHints hints;
  ASSERT_TRUE(hints.add(3, hint("a.h5:" + path + " chunk=[16,8]")));
  EXPECT_TRUE(hints.grid_for(3, "/a.h5", dataset("..." + path.substr(path.size() - 176))));
  EXPECT_THAT(hints.complaints_of(3), IsEmpty());
  EXPECT_FALSE(hints.grid_for(3, "/a.h5", dataset("..." + std::string(168, 'g') + "/entropy")));
  EXPECT_FALSE(hints.grid_for(3, "/a.h5", dataset("/density")));
}

TEST(ArrayHints, FilesAreNamedByPatterns) {
  ArrayHints hints;
  ASSERT_TRUE(hints.add(3, hint("step-*.h5:/x chunk=[16,8]")));
  ASSERT_TRUE(hints.add(3, hint("/data/*/b.h5:/x chunk=[4,4]")));
  EXPECT_TRUE(hints.grid_for(3, "/any/step-7.h5", dataset()));
  EXPECT_TRUE(hints.grid_for(3, "/data/c/b.h5", dataset()));
  EXPECT_FALSE(hints.grid_for(3, "/b.h5", dataset()));
}

TEST(ArrayHints, AnOptionCountsBeforeARule) {
  ArrayHints hints;
  ASSERT_TRUE(hints.add(3, hint("a.h5:/x chunk=[16,8]")));
  ASSERT_TRUE(hints.add_of_rule(3, hint("a.h5:/x chunk=[4,4]")));
  ASSERT_TRUE(hints.add_of_rule(3, hint("*.h5:/x chunk=[2,2]")));
  EXPECT_EQ(hints.grid_for(3, "/a.h5", dataset())->shape().chunk, (Coordinates{16, 8}));
  EXPECT_EQ(hints.grid_for(3, "/b.h5", dataset())->shape().chunk, (Coordinates{2, 2}));
}

// By whichever of their patterns they mean the file.
TEST(ArrayHints, AnOptionCountsBeforeEarlierOnesAndARuleBeforeLaterOnes) {
  for (const std::uint32_t run : {0U, 3U}) {
    ArrayHints hints;
    ASSERT_TRUE(hints.add_of_rule(run, hint("a.h5:/x chunk=[2,2]")));
    ASSERT_TRUE(hints.add_of_rule(run, hint("*.h5:/x chunk=[4,4]")));
    const auto chunk = [&](const char* path) {
      return hints.grid_for(3, path, dataset())->shape().chunk;
    };
    EXPECT_EQ(chunk("/a.h5"), (Coordinates{2, 2})) << run;
    EXPECT_EQ(chunk("/b.h5"), (Coordinates{4, 4})) << run;
    ASSERT_TRUE(hints.add(run, hint("?.h5:/x chunk=[8,8]")));
    EXPECT_EQ(chunk("/a.h5"), (Coordinates{8, 8})) << run;
    ASSERT_TRUE(hints.add(run, hint("b.h5:/x chunk=[16,8]")));
    EXPECT_EQ(chunk("/b.h5"), (Coordinates{16, 8})) << run;
    ASSERT_TRUE(hints.add(run, hint("?.h5:/x chunk=[8,8]")));
    EXPECT_EQ(chunk("/b.h5"), (Coordinates{8, 8})) << "the later one, though said before " << run;
    ArrayHints next;  // a successor's
    for (const auto& said : hints.snapshot()) ASSERT_TRUE(next.add(said.run, hint(said.text)));
    EXPECT_EQ(next.grid_for(3, "/b.h5", dataset())->shape().chunk, (Coordinates{8, 8})) << run;
  }
}

TEST(ArrayHints, OneOfTheGreatestLengthIsTakenByASuccessor) {
  const std::string end = " chunk=[16,8]";
  const std::string longest =
      "a.h5:/" + std::string(arrays::ArrayHint::kTextMax - 6 - end.size(), 'x') + end;
  ArrayHints hints;
  ASSERT_TRUE(hints.add(0, hint(longest)));
  EXPECT_TRUE(arrays::parse_array_hint(hints.snapshot().front().text));
}

TEST(ArrayHints, ThoseOfARunGoBeforeThoseOfTheNodeAndLaterOnesBeforeEarlierOnes) {
  ArrayHints hints;
  ASSERT_TRUE(hints.add(0, hint("a.h5:/x chunk=[4,4]")));
  EXPECT_EQ(hints.grid_for(3, "/a.h5", dataset())->shape().chunk, (Coordinates{4, 4}));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/x chunk=[16,8]")));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/x chunk=[32,8]")));
  EXPECT_EQ(hints.grid_for(3, "/a.h5", dataset())->shape().chunk, (Coordinates{32, 8}));
  hints.end_run(3);
  hints.end_run(0);
  EXPECT_TRUE(hints.grid_for(3, "/a.h5", dataset())) << "the node's stays";
}

TEST(ArrayHints, WhatFitsNothingIsNamed) {
  ArrayHints hints;
  ASSERT_TRUE(hints.add(3, hint("a.h5:/none chunk=[4,4]")));
  ASSERT_TRUE(hints.add(3, hint("missing.h5:/x chunk=[4,4]")));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/cube chunk=[4,4]")));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/x chunk=[65,4]")));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/packed chunk=[4,4]")));
  ASSERT_TRUE(hints.add(3, hint("a.h5:/small chunk=[4,4]")));
  DatasetNews packed = dataset("/packed");
  packed.layout = arrays::Layout::kChunked;
  DatasetNews small = dataset("/small");
  small.unfit = LeftReason::kSmall;
  for (const DatasetNews& each : {dataset(), dataset("/cube", {8, 8, 8}), packed, small})
    EXPECT_FALSE(hints.grid_for(3, "/data/a.h5", each)) << each.name;
  EXPECT_THAT(hints.complaints_of(3),
              ElementsAre(HasSubstr("no dataset /none of the file was read"),
                          HasSubstr("no HDF5 file of that name was read"),
                          HasSubstr("the array has 3 dimensions; give as many numbers"),
                          HasSubstr("chunk of 65 cells in dimension 0: the array has 64"),
                          HasSubstr("packed, and cached as they are"),
                          HasSubstr("left to HDF5: smaller than a MiB")));
  EXPECT_THAT(hints.complaints_of(4), IsEmpty());
}

TEST(ArrayHints, ChunksOfASizeThatIsNotGatheredAreNoGrid) {
  for (const auto& [numbers, said] :
       {std::pair("[1,1]", "its chunks have 8 B: "), std::pair("[64,64]", "have 32 KiB: "),
        std::pair("[4096,4096]", "its chunks have more than 64 MiB")}) {
    ArrayHints hints;
    ASSERT_TRUE(hints.add(3, hint(std::string("a.h5:/x chunk=") + numbers)));
    DatasetNews cells = dataset("/x", {4096, 4096});
    cells.cell_bytes = 8;
    EXPECT_FALSE(hints.grid_for(3, "/a.h5", cells)) << numbers;
    EXPECT_THAT(hints.complaints_of(3), ElementsAre(HasSubstr(said)));
  }
  ArrayHints hints;
  ASSERT_TRUE(hints.add(3, hint("a.h5:/x chunk=[64,64] ghost=[32,32]")));
  DatasetNews cells = dataset("/x", {4096, 4096});
  cells.cell_bytes = 8;
  EXPECT_TRUE(hints.grid_for(3, "/a.h5", cells)) << "with its ghost zone it has 128 KiB";
}

TEST(ArrayHints, NumbersThatCannotBeAndTooManyHintsAreRefused) {
  ArrayHints hints;
  EXPECT_FALSE(hints.add(3, hint("a.h5:/x chunk=[0,4]")));
  EXPECT_FALSE(hints.add(3, hint("a.h5:/x chunk=[4,4] ghost=[5,0]")));
  for (std::size_t at = 0; at < ArrayHints::kHintsMax; ++at)
    EXPECT_TRUE(hints.add(3, hint("a.h5:/" + std::to_string(at) + " chunk=[4]")));
  EXPECT_FALSE(hints.add(3, hint("a.h5:/more chunk=[4]")));
  EXPECT_TRUE(hints.add(4, hint("a.h5:/more chunk=[4]")));
}

TEST(ArrayHints, AreAddedTogetherOrNotAtAll) {
  ArrayHints hints;
  ASSERT_TRUE(hints.add(0, hint("a.h5:/x chunk=[4,4]")));
  const Status status = hints.add_all(0, {hint("a.h5:/x chunk=[8,8]"), hint("a.h5:/y chunk=[0]")});
  EXPECT_THAT(status.message(), HasSubstr("\"a.h5:/y chunk=[0]\": "));
  ASSERT_EQ(hints.snapshot().size(), 1u);
  EXPECT_THAT(hints.snapshot().front().text, HasSubstr("chunk=[4,4]"));
  EXPECT_TRUE(hints.add_all(0, {hint("a.h5:/x chunk=[8,8]"), hint("a.h5:/y chunk=[2]")}));
  EXPECT_EQ(hints.snapshot().size(), 2u);
}

TEST(ArrayHints, ThoseThatAreRefusedAreNamedUntilTheRunEnds) {
  ArrayHints hints;
  for (std::size_t at = 0; at < ArrayHints::kRefusedMax + 2; ++at)
    hints.note_refused(3, "hint " + std::to_string(at));
  const auto complaints = hints.complaints_of(3);
  ASSERT_EQ(complaints.size(), ArrayHints::kRefusedMax + 1);
  EXPECT_EQ(complaints.front(), "hint 0");
  EXPECT_THAT(complaints.back(), HasSubstr("2 more array hints"));
  EXPECT_THAT(hints.complaints_of(4), IsEmpty());
  hints.end_run(3);
  EXPECT_THAT(hints.complaints_of(3), IsEmpty());
}

}  // namespace
}  // namespace cairn::node
