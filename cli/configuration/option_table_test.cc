// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "policy/placement/policies.h"
#include "policy/replacement/experts.h"
#include "policy/replacement/policies.h"

namespace cairn::cli {
namespace {

using ::testing::UnorderedElementsAreArray;

TEST(OptionTable, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  std::set<std::string> environment;
  std::set<std::string_view> flags;
  for (const Option& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(environment.insert(environment_of(option)).second) << option.name;
    EXPECT_TRUE(option.flag.name.empty() || flags.insert(option.flag.name).second) << option.name;
    EXPECT_EQ(find_option(option.name), &option);
    EXPECT_TRUE(option.access.set != nullptr && option.access.get != nullptr) << option.name;
    EXPECT_FALSE(unit_of(option).empty()) << option.name;
    EXPECT_FALSE(option.description.empty());
    EXPECT_FALSE(option.advice.empty());
  }
  EXPECT_EQ(find_option("ram"), nullptr);
}

TEST(OptionTable, EnvironmentFollowsTheName) {
  EXPECT_EQ(environment_of(option_named("ram.huge_pages")), "CAIRN_RAM_HUGE_PAGES");
  EXPECT_EQ(environment_of(option_named("tiers")), "CAIRN_TIERS");
}

TEST(OptionTable, DefaultsAreValid) {
  for (const Option& option : option_table()) {
    const bool is_number =
        option.type == OptionType::kSize || option.type == OptionType::kPercent ||
        option.type == OptionType::kCount || option.type == OptionType::kMilliseconds;
    if (!is_number || option.default_text == "auto") continue;
    std::string problem;
    EXPECT_TRUE(parse_option_number(option, option.default_text, &problem).has_value()) << problem;
  }
}

TEST(OptionTable, NumbersSayWhatIsWrong) {
  std::string problem;
  const Option& streams = option_named("flush.streams");
  EXPECT_EQ(parse_option_number(streams, "8", &problem), 8U);
  EXPECT_FALSE(parse_option_number(streams, "many", &problem).has_value());
  EXPECT_EQ(problem, "flush.streams: \"many\" is not a whole number");
  EXPECT_FALSE(parse_option_number(streams, "65", &problem).has_value());
  EXPECT_EQ(problem, "flush.streams: 65 is out of range, allowed is 1 to 64");
  EXPECT_EQ(parse_option_number(option_named("evict.low_percent"), "7%", &problem), 7U);
}

// The value of an option is the place of its choice.
TEST(OptionTable, DefaultsAreThoseOfTheStructs) {
  const Configuration plain;
  for (const Option& option : option_table()) {
    const bool by_looking = option.default_text == "auto" || option.default_text.empty();
    if (by_looking || option.type == OptionType::kName) continue;
    EXPECT_EQ(value_text(option, plain), option.default_text) << option.name;
  }
}

TEST(OptionTable, EveryChoiceComesBackAsItWasSet) {
  const MachineRoots roots;
  for (const Option& option : option_table()) {
    if (option.type != OptionType::kChoice && option.type != OptionType::kPolicy) continue;
    ASSERT_FALSE(option.choices.empty()) << option.name;
    for (const std::string_view choice : option.choices) {
      Draft draft(roots);
      option.access.set({&option, {{std::string(choice), "", "here"}}, "here"}, draft);
      EXPECT_TRUE(draft.problems.empty()) << option.name << ": " << choice;
      EXPECT_EQ(value_text(option, draft.configuration), choice) << option.name;
    }
    Draft draft(roots);
    option.access.set({&option, {{"no-such-choice", "", "here"}}, "here"}, draft);
    EXPECT_EQ(draft.problems.size(), 1U) << option.name;
  }
}

TEST(OptionTable, NamesThePoliciesAndExpertsThatThereAre) {
  std::vector<std::string_view> policies = {"minimize-io-time"};  // a plugin that comes with Cairn
  for (const PlacementPolicy* policy : placement_policies()) policies.push_back(policy->name());
  EXPECT_THAT(option_named("placement.policy").choices, UnorderedElementsAreArray(policies));
  std::vector<std::string_view> experts;
  for (const ReplacementPolicy* policy : replacement_policies()) experts.push_back(policy->name());
  for (const ExpertMaker& maker : kExpertMakers) experts.push_back(maker.name);
  EXPECT_THAT(option_named("replacement.expert").choices, UnorderedElementsAreArray(experts));
}

}  // namespace
}  // namespace cairn::cli
