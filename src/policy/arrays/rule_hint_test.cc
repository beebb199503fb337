// SPDX-License-Identifier: Apache-2.0
#include "policy/arrays/rule_hint.h"

#include <gtest/gtest.h>

namespace cairn::arrays {
namespace {

TEST(RuleHint, SpeaksOfTheFilesOfTheRule) {
  FileRule rule;
  rule.array = "/x chunk=[8,4] ghost=[1,1]";
  for (const auto& [pattern, file] :
       {std::pair{"*.h5", "*.h5"}, std::pair{"a.h5", "a.h5"}, std::pair{"/run/*.h5", "/run/*.h5"},
        std::pair{"*/run/a.h5", "*/run/a.h5"}, std::pair{"run/*.h5", "*/run/*.h5"}}) {
    rule.pattern = pattern;
    const auto hint = hint_of(rule);
    ASSERT_TRUE(hint) << pattern;
    EXPECT_EQ(hint->file, file);
    EXPECT_EQ(hint->dataset, "/x");
    EXPECT_EQ(hint->chunk, (Coordinates{8, 4}));
    EXPECT_EQ(hint->ghost, (Coordinates{1, 1}));
  }
  rule.array = "/x chunk=[8,4] ghost=[9,1]";
  EXPECT_FALSE(hint_of(rule));
  rule.array = "x chunk=[8]";
  EXPECT_FALSE(hint_of(rule));
}

}  // namespace
}  // namespace cairn::arrays
