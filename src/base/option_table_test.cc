// SPDX-License-Identifier: Apache-2.0
#include "base/option_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/handling.h"

namespace cairn {
namespace {

TEST(OptionTable, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  std::set<std::string_view> environment;
  for (const OptionDescription& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name;
    EXPECT_TRUE(environment.insert(option.environment).second) << option.environment;
    EXPECT_EQ(find_option(option.name), &option_description(option.id));
    EXPECT_FALSE(option.description.empty());
    EXPECT_FALSE(option.advice.empty());
  }
  EXPECT_EQ(find_option("ram"), nullptr);
}

TEST(OptionTable, EnvironmentFollowsTheName) {
  for (const OptionDescription& option : option_table()) {
    std::string expected = "CAIRN_";
    for (const char letter : option.name) {
      expected += letter == '.'
                      ? '_'
                      : static_cast<char>(letter >= 'a' && letter <= 'z' ? letter - 32 : letter);
    }
    EXPECT_EQ(option.environment, expected);
  }
}

TEST(OptionTable, DefaultsAreValid) {
  for (const OptionDescription& option : option_table()) {
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
  const OptionDescription& streams = option_description(OptionId::kFlushStreams);
  EXPECT_EQ(parse_option_number(streams, "8", &problem), 8U);
  EXPECT_FALSE(parse_option_number(streams, "many", &problem).has_value());
  EXPECT_EQ(problem, "flush.streams: \"many\" is not a whole number");
  EXPECT_FALSE(parse_option_number(streams, "65", &problem).has_value());
  EXPECT_EQ(problem, "flush.streams: 65 is out of range, allowed is 1 to 64");
  EXPECT_EQ(parse_option_number(option_description(OptionId::kEvictLow), "7%", &problem), 7U);
}

TEST(OptionTable, ChoicesAreTheWordsOfTheTable) {
  const auto modes = option_choices(option_description(OptionId::kBufferMode));
  ASSERT_EQ(modes.size(), kBufferingModes);
  for (unsigned index = 0; index < kBufferingModes; ++index) {
    EXPECT_EQ(modes[index], name_of(static_cast<BufferingMode>(index)));
  }
  const auto triggers = option_choices(option_description(OptionId::kFlushTrigger));
  ASSERT_EQ(triggers.size(), kFlushTriggers);
  for (unsigned index = 0; index < kFlushTriggers; ++index) {
    EXPECT_EQ(triggers[index], name_of(static_cast<FlushTrigger>(index)));
  }
  EXPECT_TRUE(option_choices(option_description(OptionId::kRamCapacity)).empty());
}

}  // namespace
}  // namespace cairn
