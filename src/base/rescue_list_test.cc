// SPDX-License-Identifier: Apache-2.0
#include "base/rescue_list.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

RescueEntry entry_of(const std::string& path) {
  RescueEntry entry;
  entry.path = path;
  entry.device = 66306;
  entry.inode = 12;
  entry.size = UINT64_MAX;
  entry.mtime_ns = -1;
  entry.stored_ns = 17;
  entry.offset = 4096;
  entry.length = 100;
  entry.saved = "1";
  entry.why = "No space left on device";
  return entry;
}

std::string without_end(std::string line) {
  line.pop_back();
  return line;
}

TEST(RescueList, AnyNameComesBack) {
  for (const std::string path : {"/a b", "/tab\tnew\nline\\x41", "/\xff\xfe", "", "/-", "-"}) {
    const std::string line = rescue_line(entry_of(path));
    EXPECT_EQ(line.find('\n'), line.size() - 1);
    const auto read = parse_rescue_line(without_end(line));
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->path, path);
    EXPECT_EQ(read->size, UINT64_MAX);
    EXPECT_EQ(read->mtime_ns, -1);
    EXPECT_EQ(read->stored_ns, 17);
    EXPECT_EQ(read->offset, 4096u);
    EXPECT_EQ(read->why, "No space left on device");
  }
}

TEST(RescueList, WhatIsNoLineIsNone) {
  const std::string line = without_end(rescue_line(entry_of("/a")));
  for (std::size_t length = 0; length + 30 < line.size(); ++length)
    EXPECT_FALSE(parse_rescue_line(line.substr(0, length))) << length;
  EXPECT_FALSE(parse_rescue_line("x" + line));
  EXPECT_FALSE(parse_rescue_line(line + "\tmore"));
  EXPECT_FALSE(parse_rescue_line(line + "\\x4"));
}

TEST(RescueList, AFileThatWasBegunIsKnownByWhatItIsSavedIn) {
  const std::string line = without_end(begun_line(entry_of("/a")));
  EXPECT_EQ(parse_begun_line(line), "1");
  EXPECT_FALSE(parse_rescue_line(line));
  EXPECT_FALSE(parse_begun_line(without_end(rescue_line(entry_of("/a")))));
  EXPECT_FALSE(parse_begun_line("begun\t1"));
  EXPECT_FALSE(parse_begun_line("begun\t1\tx"));
}

}  // namespace
}  // namespace cairn
