// SPDX-License-Identifier: Apache-2.0
#include "cli/run/plain_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/configuration/option_table.h"

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;

using Words = std::vector<std::string>;

TEST(PlainRun, TakesTheFlagsThatScriptsWrite) {
  const auto taken = take_plain_words({"run", "--buffer", "/a", "--node", "job", "--no-report",
                                       "--exclude", "*.log", "--buffer", "b", "--", "app", "-v"});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->node, "job");
  EXPECT_THAT(taken->buffer, ElementsAre("/a", "b"));
  EXPECT_THAT(taken->exclude, ElementsAre("*.log"));
  EXPECT_FALSE(taken->report);
  EXPECT_THAT(taken->command_line, ElementsAre("app", "-v"));
}

TEST(PlainRun, TheProgramNeedsNoDashes) {
  const auto taken = take_plain_words({"run", "--node", "job", "app", "--node", "other"});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(taken->node, "job");
  EXPECT_TRUE(taken->report);
  EXPECT_THAT(taken->command_line, ElementsAre("app", "--node", "other"));
}

TEST(PlainRun, LeavesWhatIsNotPlainToTheParser) {
  const std::vector<Words> others = {
      {},
      {"status", "--node", "job"},
      {"run", "--", "app"},
      {"run", "--node", "job"},
      {"run", "--node", "job", "--"},
      {"run", "--node", "job", "--", ""},
      {"run", "--node", "", "--", "app"},
      {"run", "--node=job", "--", "app"},
      {"run", "--node", "--", "app"},
      {"run", "--node", "[job]", "--", "app"},
      {"run", "--node", "job", "--help", "--", "app"},
      {"run", "--node", "job", "-v", "--", "app"},
      {"run", "--node", "job", "-", "--", "app"},
      {"run", "--node", "job", "--bufer", "/a", "--", "app"},
      {"run", "--node", "job", "--config", "/a", "--", "app"},
  };
  for (const Words& words : others)
    EXPECT_FALSE(take_plain_words(words).has_value()) << ::testing::PrintToString(words);
}

TEST(PlainRun, LeavesARepetitionToTheParser) {
  EXPECT_FALSE(take_plain_words({"run", "--node", "a", "--node", "b", "--", "app"}));
  EXPECT_FALSE(take_plain_words({"run", "--node", "a", "--no-report", "--no-report", "--", "app"}));
}

// An option that plain runs do not know would not be obeyed.
TEST(PlainRun, KnowsTheVariablesOfAllOptionsOfRuns) {
  for (const Option& option : option_table()) {
    if (!option.hot_changeable) continue;
    const std::string variable = environment_of(option) + "=value";
    EXPECT_TRUE(may_set_option(variable.c_str())) << variable;
  }
  EXPECT_TRUE(may_set_option("CAIRN_CONFIG=job.yaml"));
}

TEST(PlainRun, TakesOtherVariablesForWhatTheyAre) {
  for (const char* variable : {"CAIRN_RUN_ROOT=/r", "CAIRN_SOCKET=/r/n/client.sock", "CAIRN_RUN=1",
                               "CAIRN_BUFFER=/a", "CAIRN_EXCLUDE=*.o", "CAIRN_FDS=3", "HOME=/h"})
    EXPECT_FALSE(may_set_option(variable)) << variable;
}

}  // namespace
}  // namespace cairn::cli
