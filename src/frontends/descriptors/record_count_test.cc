// SPDX-License-Identifier: Apache-2.0
#include "frontends/descriptors/record_count.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(RecordCount, EndsWithTheLastOfDescriptorsAndCalls) {
  RecordCount count;
  EXPECT_TRUE(count.is_none());
  EXPECT_FALSE(count.add_call()) << "there is no descriptor yet";
  count.begin();
  EXPECT_FALSE(count.has_others());
  EXPECT_TRUE(count.add_descriptor());
  EXPECT_TRUE(count.has_others());
  EXPECT_FALSE(count.drop_descriptor());
  EXPECT_TRUE(count.add_call());
  EXPECT_TRUE(count.has_others());
  EXPECT_FALSE(count.drop_descriptor()) << "a call is under way";
  EXPECT_EQ(count.descriptors(), 0U);
  EXPECT_FALSE(count.add_call()) << "the program has closed it";
  EXPECT_FALSE(count.add_descriptor());
  EXPECT_TRUE(count.drop_call());
  EXPECT_TRUE(count.is_none());
}

TEST(RecordCount, TheOnlyDescriptorIsDroppedAlone) {
  RecordCount count;
  count.begin();
  EXPECT_TRUE(count.add_call());
  EXPECT_FALSE(count.drop_if_alone());
  EXPECT_FALSE(count.drop_call());
  EXPECT_TRUE(count.drop_if_alone());
  EXPECT_TRUE(count.is_none());
}

TEST(RecordCount, AChildHasTheDescriptorsAlone) {
  RecordCount count;
  count.begin();
  EXPECT_TRUE(count.add_descriptor());
  EXPECT_TRUE(count.add_call());
  count.forget_calls();
  EXPECT_EQ(count.descriptors(), 2U);
  EXPECT_FALSE(count.drop_descriptor());
  EXPECT_TRUE(count.drop_descriptor());
}

}  // namespace
}  // namespace cairn
