// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/rule_match.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn {
namespace {

FileRule rule_for(const std::string& pattern) {
  FileRule rule;
  rule.pattern = pattern;
  return rule;
}

bool matches(const std::string& pattern, const std::string& path,
             const std::string& directory = "/pfs/run") {
  return rule_matches(rule_for(pattern), FileFacts{.path = path, .directory = directory});
}

// The cases that decide for --exclude too (frontends/paths/path_filter.cc).
TEST(RuleMatch, APatternIsHeldAgainstThreeTexts) {
  EXPECT_TRUE(matches("/pfs/run/a.h5", "/pfs/run/a.h5"));
  EXPECT_TRUE(matches("/pfs/*.h5", "/pfs/run/deep/a.h5")) << "* matches slashes";
  EXPECT_TRUE(matches("deep/*.h5", "/pfs/run/deep/a.h5")) << "below the directory";
  EXPECT_FALSE(matches("deep/*.h5", "/pfs/run/deep/a.h5", ""));
  EXPECT_FALSE(matches("deep/*.h5", "/pfs/run/deep/a.h5", "/pfs/ru"));
  EXPECT_TRUE(matches("a.h5", "/pfs/run/deep/a.h5")) << "last component";
  EXPECT_FALSE(matches("/a.h5", "/pfs/run/deep/a.h5")) << "a slash: not the last component";
  EXPECT_TRUE(matches("*", "/pfs/run/.hidden")) << "a leading dot is nothing special";
  EXPECT_TRUE(matches("[ab].h?", "/pfs/run/b.h5"));
  EXPECT_TRUE(matches("a\\*", "/pfs/run/a*"));
  EXPECT_FALSE(matches("a\\*", "/pfs/run/ab"));
}

TEST(RuleMatch, TheMarkStandsForDigits) {
  EXPECT_TRUE(matches("step-{n}.h5", "/pfs/run/step-7.h5"));
  EXPECT_TRUE(matches("step-{n}.h5", "/pfs/run/step-0042.h5"));
  EXPECT_FALSE(matches("step-{n}.h5", "/pfs/run/step-.h5"));
  EXPECT_FALSE(matches("step-{n}.h5", "/pfs/run/step-7a.h5"));
  EXPECT_FALSE(matches("step-{n}.h5", "/pfs/run/step-{n}.h5"));
  EXPECT_TRUE(matches("*/{n}/data", "/pfs/run/12/data"));
  EXPECT_TRUE(matches("\\{n}", "/pfs/run/{n}")) << "escaped, it is its own letters";
  EXPECT_FALSE(matches("\\{n}", "/pfs/run/7"));
  EXPECT_TRUE(matches("\\\\{n}", "/pfs/run/\\7"));
  EXPECT_FALSE(matches("{n}", "/pfs/run/12345678901234567890")) << "20 digits are no number";
  EXPECT_EQ(count_generation_marks("a{n}b{n}"), 2U);
  EXPECT_EQ(count_generation_marks("\\{n}{n"), 0U);
}

std::optional<std::uint64_t> generation(const std::string& pattern, const std::string& path) {
  return generation_of(rule_for(pattern), FileFacts{.path = path, .directory = "/pfs/run"});
}

TEST(RuleMatch, TheGenerationIsTheNumberOfTheMark) {
  EXPECT_EQ(generation("step-{n}.h5", "/pfs/run/step-0042.h5"), 42U);
  EXPECT_EQ(generation("run{n}/*", "/pfs/run/run8/99"), 8U);
  EXPECT_EQ(generation("*-{n}*", "/pfs/run/a-12-34"), 12U) << "what begins first";
  EXPECT_EQ(generation("{n}*", "/pfs/run/1234x"), 1234U) << "from there the most digits";
  EXPECT_EQ(generation("{n}", "/pfs/run/9999999999999999999"), 9999999999999999999U);
  EXPECT_EQ(generation("step-{n}.h5", "/pfs/run/other"), std::nullopt);
  EXPECT_EQ(generation("step-*.h5", "/pfs/run/step-1.h5"), std::nullopt);
}

TEST(RuleMatch, EveryConditionCounts) {
  FileRule rule = rule_for("*");
  rule.size_min = 10;
  rule.size_max = 20;
  rule.access = RuleAccess::kRead;
  const FileFacts good{.path = "/f", .size = 10, .access = RuleAccess::kRead};
  EXPECT_TRUE(rule_matches(rule, good));
  FileFacts file = good;
  file.size = 20;
  EXPECT_TRUE(rule_matches(rule, file)) << "the maximum belongs to the range";
  file.size = 21;
  EXPECT_FALSE(rule_matches(rule, file));
  file.size = 9;
  EXPECT_FALSE(rule_matches(rule, file));
  file = good;
  file.access = RuleAccess::kReadWrite;
  EXPECT_FALSE(rule_matches(rule, file));
  file.access = RuleAccess::kAny;
  EXPECT_FALSE(rule_matches(rule, file)) << "how it is opened is not known";
}

TEST(RuleMatch, ARuleForAPartNeedsAnOffset) {
  FileRule rule = rule_for("*");
  rule.offset_begin = 100;
  rule.offset_end = 200;
  FileFacts file{.path = "/f"};
  EXPECT_FALSE(rule_matches(rule, file));
  file.offset = 100;
  EXPECT_TRUE(rule_matches(rule, file));
  file.offset = 200;
  EXPECT_FALSE(rule_matches(rule, file)) << "the end does not belong to the range";
  file.offset = 99;
  EXPECT_FALSE(rule_matches(rule, file));
}

TEST(EffectiveHandling, TheFirstRuleThatSetsAPropertyDecidesIt) {
  std::vector<FileRule> rules = {rule_for("*.h5"), rule_for("a*"), rule_for("*"), rule_for("z")};
  rules[0].mode = BufferingMode::kScratch;
  rules[1].mode = BufferingMode::kSync;
  rules[1].tier = "nvme";
  rules[1].pinned = false;
  rules[2].tier = "ssd";
  rules[2].pinned = true;
  rules[2].priority = 0;
  rules[2].reserve = Reservation{"", 1 << 20};
  rules[3].keep = 1;
  const EffectiveHandling handling = effective_handling(rules, {.path = "/pfs/a.h5"});
  EXPECT_EQ(handling.properties.mode, BufferingMode::kScratch);
  EXPECT_EQ(handling.properties.tier, "nvme");
  EXPECT_EQ(handling.properties.pinned, false);
  EXPECT_EQ(handling.properties.priority, 0U);
  EXPECT_FALSE(handling.properties.keep || handling.properties.trigger);
  EXPECT_EQ(handling.rule_for(RuleProperty::kMode), &rules[0]);
  EXPECT_EQ(handling.rule_for(RuleProperty::kTier), &rules[1]);
  EXPECT_EQ(handling.rule_for(RuleProperty::kPin), &rules[1]);
  EXPECT_EQ(handling.rule_for(RuleProperty::kPriority), &rules[2]);
  EXPECT_EQ(handling.rule_for(RuleProperty::kReserve), &rules[2]);
  EXPECT_EQ(handling.properties.reserve, rules[2].reserve);
  EXPECT_EQ(handling.rule_for(RuleProperty::kKeep), nullptr);
  EXPECT_FALSE(effective_handling({}, {.path = "/f"}).properties.mode.has_value());
}

}  // namespace
}  // namespace cairn
