// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/rescued_files.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "cli/terminal/failure.h"

namespace cairn::cli {
namespace {

RescueEntry range_of(const std::string& saved, uint64_t offset, uint64_t length) {
  RescueEntry entry;
  entry.path = "/s/f";
  entry.saved = saved;
  entry.offset = offset;
  entry.length = length;
  entry.why = "full";
  return entry;
}

RescuedFiles parsed(const std::string& lines) {
  return parse_rescue_list("list", rescue_list_head() + lines);
}

TEST(RescuedFiles, RangesAreByFileAndWhatIsLostIsBesideThem) {
  const RescuedFiles found =
      parsed(rescue_line(range_of("1", 0, 10)) + rescue_line(range_of("1", 20, 5)) +
             rescue_line(range_of("", 30, 7)) + begun_line(range_of("1", 0, 10)));
  ASSERT_EQ(found.saved.size(), 1u);
  EXPECT_EQ(found.saved.at("1").bytes, 15u);
  EXPECT_EQ(found.saved.at("1").ranges.size(), 2u);
  EXPECT_TRUE(found.saved.at("1").is_begun);
  ASSERT_EQ(found.lost.size(), 1u);
  EXPECT_EQ(found.lost.at("/s/f").bytes, 7u);
}

TEST(RescuedFiles, AWordThatWasCutOffMeansNothing) {
  const std::string whole = rescue_list_head() + rescue_line(range_of("1", 0, 10));
  const RescuedFiles found = parse_rescue_list("list", whole + "begun\t1");
  EXPECT_FALSE(found.saved.at("1").is_begun);
  EXPECT_EQ(found.whole_bytes, whole.size());
}

TEST(RescuedFiles, NothingIsWrittenPastWhatAFileCanHave) {
  EXPECT_NO_THROW(parsed(rescue_line(range_of("1", 10, INT64_MAX - 10))));
  EXPECT_THROW(parsed(rescue_line(range_of("1", 11, INT64_MAX - 10))), Failure);
  EXPECT_THROW(parsed(rescue_line(range_of("1", UINT64_MAX, 1))), Failure);
}

TEST(RescuedFiles, OnlyFilesOfTheDirectoryAreRead) {
  for (const char* name : {"../f", "/f", "list"})
    EXPECT_THROW(parsed(rescue_line(range_of(name, 0, 1))), Failure) << name;
  EXPECT_THROW(parsed(begun_line(range_of("1", 0, 1))), Failure) << "no line names it before";
}

TEST(RescuedFiles, TimesBefore1970AreTimes) {
  for (const int64_t time : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    const timespec parts = time_of(time);
    EXPECT_GE(parts.tv_nsec, 0);
    EXPECT_LT(parts.tv_nsec, 1'000'000'000);
  }
  EXPECT_EQ(time_of(-1).tv_sec, -1);
  EXPECT_EQ(time_of(-1).tv_nsec, 999'999'999);
}

}  // namespace
}  // namespace cairn::cli
