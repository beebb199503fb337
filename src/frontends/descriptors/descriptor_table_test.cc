// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/descriptor_table.h"

#include <gtest/gtest.h>

#include <climits>
#include <vector>

#include "frontends/descriptors/open_file.h"

namespace cairn {
namespace {

TEST(DescriptorTableTest, KnowsOnlyWhatWasSet) {
  OpenFile file;
  EXPECT_EQ(DescriptorTable::find(5000), nullptr);
  EXPECT_EQ(DescriptorTable::set(5000, &file), nullptr);
  EXPECT_EQ(DescriptorTable::find(5000), &file);
  EXPECT_EQ(DescriptorTable::find(5001), nullptr);
  EXPECT_TRUE(DescriptorTable::any());
  EXPECT_EQ(DescriptorTable::take(5000), &file);
  EXPECT_EQ(DescriptorTable::take(5000), nullptr);
  EXPECT_EQ(DescriptorTable::find(5000), nullptr);
}

TEST(DescriptorTableTest, GivesWhatItOverwrites) {
  OpenFile first;
  OpenFile second;
  EXPECT_EQ(DescriptorTable::set(5000, &first), nullptr);
  EXPECT_EQ(DescriptorTable::set(5000, &second), &first);
  EXPECT_EQ(DescriptorTable::take(5000), &second);
  EXPECT_FALSE(DescriptorTable::any());
}

TEST(DescriptorTableTest, TakesAnyNumber) {
  for (const int fd : {-1, INT_MIN, INT_MAX, DescriptorTable::kDescriptorsMax}) {
    EXPECT_EQ(DescriptorTable::find(fd), nullptr);
    EXPECT_EQ(DescriptorTable::take(fd), nullptr);
  }
}

TEST(DescriptorTableTest, VisitsARangeInOrder) {
  OpenFile file;
  for (const int fd : {6003, 6001, 6002}) (void)DescriptorTable::set(fd, &file);
  std::vector<int> seen;
  DescriptorTable::for_each([&](int fd, OpenFile&) { seen.push_back(fd); }, 6001, 6002);
  EXPECT_EQ(seen, (std::vector<int>{6001, 6002}));
  for (const int fd : {6001, 6002, 6003}) DescriptorTable::take(fd);
}

}  // namespace
}  // namespace cairn
