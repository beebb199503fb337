// SPDX-License-Identifier: Apache-2.0
#include "service/treatment/generations.h"

#include <gtest/gtest.h>

#include <set>

namespace cairn::node {
namespace {

FileRule keeping(const char* pattern, unsigned keep) {
  FileRule rule;
  rule.pattern = pattern;
  rule.keep = keep;
  return rule;
}

TEST(Generations, FindsTheNumber) {
  const auto generation = generation_of(keeping("step-{n}.h5", 2), "/d/run1/step-17.h5");
  ASSERT_TRUE(generation.has_value());
  EXPECT_EQ(generation->number, 17u);
  EXPECT_EQ(generation->path_of(15), "/d/run1/step-15.h5");
}

TEST(Generations, OtherFilesHaveNone) {
  EXPECT_FALSE(generation_of(keeping("step-{n}.h5", 2), "/d/step-x.h5"));
  EXPECT_FALSE(generation_of(keeping("step-{n}.h5", 2), "/d/step-1.nc"));
  EXPECT_FALSE(generation_of(keeping("step-1.h5", 2), "/d/step-1.h5"));
  EXPECT_FALSE(generation_of(keeping("step-{n}.h5", 2), "/d/step-007.h5"))
      << "the name of 6 could not be told from it";
}

TEST(Generations, TheWholePathCountsWhereThePatternHasASlash) {
  const auto generation = generation_of(keeping("*/out{n}/a", 1), "/d/x9/out3/a");
  ASSERT_TRUE(generation.has_value());
  EXPECT_EQ(generation->path_of(2), "/d/x9/out2/a");
}

TEST(Generations, EndsTheOldOnes) {
  const std::set<std::string> there = {"/d/s1", "/d/s2", "/d/s3", "/d/s5"};
  const auto exists = [&](const std::string& path) { return there.count(path) != 0; };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(ended_generations(keeping("s{n}", 2), "/d/s4", exists), (Paths{"/d/s2", "/d/s1"}));
  EXPECT_EQ(ended_generations(keeping("s{n}", 1), "/d/s4", exists),
            (Paths{"/d/s3", "/d/s2", "/d/s1"}));
  EXPECT_EQ(ended_generations(keeping("s{n}", 9), "/d/s4", exists), Paths{});
  EXPECT_EQ(ended_generations(keeping("t{n}", 1), "/d/s4", exists), Paths{});
}

}  // namespace
}  // namespace cairn::node
