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
  EXPECT_TRUE(count.add_descriptor()) << "a call that duplicates it";
  EXPECT_FALSE(count.drop_call());
  EXPECT_TRUE(count.drop_descriptor());
  EXPECT_TRUE(count.is_none());
  EXPECT_FALSE(count.add_call()) << "the record ends";
  EXPECT_FALSE(count.add_descriptor());
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

TEST(RecordCount, AChildCountsItsDescriptorsAnew) {
  RecordCount kept;
  RecordCount left;
  RecordCount none;
  kept.begin();
  left.begin();
  EXPECT_TRUE(left.add_call());
  EXPECT_FALSE(left.drop_descriptor());
  for (RecordCount* count : {&kept, &left, &none}) count->begin_recount();
  EXPECT_TRUE(kept.add_descriptor());
  EXPECT_TRUE(kept.add_descriptor());
  EXPECT_FALSE(kept.end_recount());
  EXPECT_TRUE(left.end_recount()) << "only a call of the parent's had it";
  EXPECT_FALSE(none.end_recount());
  EXPECT_EQ(kept.descriptors(), 2U);
  EXPECT_TRUE(left.is_none());
}

}  // namespace
}  // namespace cairn
