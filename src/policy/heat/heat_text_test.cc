// SPDX-License-Identifier: Apache-2.0
#include "policy/heat/heat_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace cairn {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

HeatPicture some_picture(std::vector<double> halvings) {
  HeatPicture picture{"/data/input.h5", 10 * kBlockBytes, kBlockBytes, 2, {}};
  for (const double halving : halvings) picture.logarithms.push_back(halving * std::log(2.0));
  return picture;
}

TEST(HeatText, EachStepIsTwiceTheScore) {
  const HeatPicture picture =
      some_picture({0, -0.5, -1.5, -2.5, -3.5, -4.5, -5.5, -7.5, -8.5, kNever});
  EXPECT_EQ(heat_text(picture, {.cells_per_row = 12, .rows_max = 4}),
            "/data/input.h5\n"
            "640 KiB in 10 segments of 64 KiB, epoch 2\n"
            "      0 B |██▇▆▅▄▃▁·   |\n"
            "blank: not accessed; · <= 0.00391 < ▁▂▃▄▅▆▇█ <= 1, each step twice the score\n");
}

TEST(HeatText, RowsSayWhereTheyBegin) {
  HeatPicture picture = some_picture({0, kNever, kNever, kNever, 0});
  EXPECT_EQ(heat_text(picture, {.cells_per_row = 4, .rows_max = 9}),
            "/data/input.h5\n"
            "640 KiB in 10 segments of 64 KiB, epoch 2\n"
            "      0 B |█   |\n"
            "  256 KiB |█   |\n"
            "  512 KiB |    |\n"
            "blank: not accessed; · <= 0.00391 < ▁▂▃▄▅▆▇█ <= 1, each step twice the score\n");
}

TEST(HeatText, ACellShowsTheHottestOfItsSegments) {
  HeatPicture picture = some_picture({-1.5, 0, kNever, -2.5});
  EXPECT_EQ(heat_text(picture, {.cells_per_row = 5, .rows_max = 1}),
            "/data/input.h5\n"
            "640 KiB in 10 segments of 64 KiB, epoch 2; a cell is 128 KiB\n"
            "      0 B |█▆   |\n"
            "blank: not accessed; · <= 0.00391 < ▁▂▃▄▅▆▇█ <= 1, each step twice the score\n");
}

TEST(HeatText, AMapWithoutAccessesSaysSo) {
  EXPECT_EQ(heat_text(some_picture({}), {.cells_per_row = 10, .rows_max = 1}),
            "/data/input.h5\n"
            "640 KiB in 10 segments of 64 KiB, epoch 2\n"
            "      0 B |          |\n"
            "nothing of it was accessed\n");
  const HeatPicture empty{"x", 0, kBlockBytes, 1, {}};
  EXPECT_EQ(heat_text(empty),
            "x\n0 B in 0 segments of 64 KiB, epoch 1\nnothing of it was accessed\n");
}

TEST(HeatText, ScoresBelowAnyNumberAreStillCompared) {
  HeatPicture picture = some_picture({-20'000, -20'001.5});
  picture.file_bytes = 2 * kBlockBytes;
  const std::string text = heat_text(picture, {.cells_per_row = 2, .rows_max = 1});
  EXPECT_NE(text.find("|█▇|"), std::string::npos) << text;
  EXPECT_NE(text.find("<= 2.51e-6021, each"), std::string::npos) << text;
}

TEST(HeatText, ATerminalObeysNoFileName) {
  HeatPicture picture = some_picture({0});
  picture.name =
      "a\x1b[2J\n\xc2\x9b"
      "b\xff\xc3\xa9";
  EXPECT_TRUE(heat_text(picture).starts_with("a?[2J??b?\xc3\xa9\n")) << heat_text(picture);
}

TEST(HeatText, NeverMoreRowsThanAskedFor) {
  for (const std::size_t segments : {1U, 63U, 64U, 65U, 1024U, 1025U, 4096U}) {
    HeatPicture picture{"x", segments * kBlockBytes, kBlockBytes, 1, {}};
    picture.logarithms.assign(segments, 0);
    const std::string text = heat_text(picture);
    const auto lines = std::ranges::count(text, '\n');
    EXPECT_LE(lines, 16 + 3) << segments;
    EXPECT_GE(lines, 1 + 3) << segments;
  }
}

TEST(HeatText, PicturesShowAMapAtATime) {
  FileHeat heat;
  heat.open(0);
  heat.access({2 * kBlockBytes, 1}, 0);
  const HeatPicture picture = picture_of(heat, "x", 1'000'000'000);
  EXPECT_EQ(picture.file_bytes, 2 * kBlockBytes + 1);
  EXPECT_EQ(picture.epochs, 1U);
  ASSERT_EQ(picture.logarithms.size(), 3U);
  EXPECT_EQ(picture.logarithms[0], kNever);
  EXPECT_DOUBLE_EQ(picture.logarithms[2], -std::log(2.0));
}

TEST(HeatText, JsonHasALineForTheMapAndEachAccessedSegment) {
  HeatPicture picture = some_picture({0, kNever, -1.25});
  picture.file_bytes = 2 * kBlockBytes + 10;
  EXPECT_EQ(heat_json_lines(picture),
            "{\"name\": \"/data/input.h5\", \"file_bytes\": 131082, \"segment_bytes\": 65536, "
            "\"epochs\": 2}\n"
            "{\"segment\": 0, \"offset\": 0, \"bytes\": 65536, \"score_log2\": 0}\n"
            "{\"segment\": 2, \"offset\": 131072, \"bytes\": 10, \"score_log2\": -1.25}\n");
}

TEST(HeatText, JsonNamesAreUtf8Whatever) {
  HeatPicture picture = some_picture({});
  picture.name =
      "\"\\\n\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
      "\xff\xc0\x80\xed\xa0\x80\xe2\x82";
  EXPECT_TRUE(heat_json_lines(picture).starts_with(
      "{\"name\": \"\\\"\\\\\\u000a\\u007f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"
      "\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\", "))
      << heat_json_lines(picture);
}

}  // namespace
}  // namespace cairn
