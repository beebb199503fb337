// SPDX-License-Identifier: Apache-2.0
#include "frontends/processes/exec_table.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace cairn {
namespace {

std::vector<ExecTableEntry> entries_of(const std::string& text, bool* is_valid) {
  ExecTableReader reader(text.c_str());
  std::vector<ExecTableEntry> entries;
  ExecTableEntry entry;
  while (reader.next(&entry)) entries.push_back(entry);
  *is_valid = reader.is_valid();
  return entries;
}

TEST(ExecTableTest, WhatIsWrittenIsRead) {
  char buffer[1024];
  ExecTableWriter writer(buffer, sizeof buffer, {.pid = 4711, .owner = 0x123456});
  EXPECT_TRUE(writer.add({.fd = 1,
                          .description = 17,
                          .generation = 3,
                          .private_fd = 4097,
                          .twin_fd = 4098,
                          .is_locked = true,
                          .hold = 99}));
  EXPECT_TRUE(writer.add({.fd = 1048575,
                          .description = UINT32_MAX,
                          .generation = UINT32_MAX,
                          .private_fd = 1048576,
                          .hold = UINT32_MAX}));
  EXPECT_EQ(std::strlen(writer.text()), writer.size());
  ExecTableReader reader(writer.text());
  ASSERT_TRUE(reader.is_valid());
  EXPECT_EQ(reader.header().pid, 4711);
  EXPECT_EQ(reader.header().owner, 0x123456U);
  ExecTableEntry entry;
  ASSERT_TRUE(reader.next(&entry));
  EXPECT_EQ(entry.fd, 1);
  EXPECT_EQ(entry.description, 17U);
  EXPECT_EQ(entry.generation, 3U);
  EXPECT_EQ(entry.private_fd, 4097);
  EXPECT_EQ(entry.twin_fd, 4098);
  EXPECT_TRUE(entry.is_locked);
  EXPECT_EQ(entry.hold, 99U);
  ASSERT_TRUE(reader.next(&entry));
  EXPECT_EQ(entry.private_fd, -1);
  EXPECT_EQ(entry.twin_fd, -1);
  EXPECT_FALSE(entry.is_locked);
  EXPECT_EQ(entry.description, UINT32_MAX);
  EXPECT_FALSE(reader.next(&entry));
  EXPECT_TRUE(reader.is_valid());
}

TEST(ExecTableTest, AFullBufferDropsEntriesAndSaysSo) {
  char buffer[200];
  ExecTableWriter writer(buffer, sizeof buffer, {.pid = INT32_MAX, .owner = 0xffffff});
  unsigned added = 0;
  const ExecTableEntry large = {.fd = 1048575,
                                .description = UINT32_MAX,
                                .generation = UINT32_MAX,
                                .private_fd = 1048575,
                                .twin_fd = 1048575,
                                .is_locked = true,
                                .hold = UINT32_MAX};
  for (unsigned index = 0; index < 10; ++index) added += writer.add(large) ? 1 : 0;
  EXPECT_FALSE(writer.is_complete());
  EXPECT_LT(writer.size(), sizeof buffer);
  bool is_valid = false;
  EXPECT_EQ(entries_of(writer.text(), &is_valid).size(), added);
  EXPECT_TRUE(is_valid);
}

TEST(ExecTableTest, DamagedTextIsRefused) {
  for (const char* text : {"", "3", "2,1,1;", "4,1,1;", "3,,1;", "3,1,16777216;",
                           "3,99999999999,1;", "-3,1,1;", " 3,1,1;", "3,1,1", "3,0x1,1;"}) {
    EXPECT_FALSE(ExecTableReader(text).is_valid()) << text;
  }
  EXPECT_FALSE(ExecTableReader(nullptr).is_valid());
  for (const char* text : {"3,1,1;1,2,3,4,5;", "3,1,1;1,2,3,4,5,6;", "3,1,1;1048576,1,1,1,1,0,1;",
                           "3,1,1;1,2,3,4,5,0,6", "3,1,1;1,2,3,4,5,2,6;",
                           "3,1,1;1,2,3,4,5,0,4294967296;", "3,1,1;a", "3,1,1;;"}) {
    bool is_valid = true;
    EXPECT_TRUE(entries_of(text, &is_valid).empty()) << text;
    EXPECT_FALSE(is_valid) << text;
  }
}

TEST(ExecTableTest, AnyTextIsSurvived) {
  std::mt19937 random(11);
  const std::string letters = "0123456789,;-x \n";
  for (int round = 0; round < 20000; ++round) {
    std::string text = round % 2 == 0 ? "3,1,1;" : "";
    for (unsigned count = random() % 64; count > 0; --count)
      text += letters[random() % letters.size()];
    bool is_valid = false;
    for (const ExecTableEntry& entry : entries_of(text, &is_valid)) {
      ASSERT_GE(entry.fd, 0);
      ASSERT_LT(entry.fd, 1 << 20);
      ASSERT_GE(entry.private_fd, -1);
    }
  }
}

}  // namespace
}  // namespace cairn
