// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/setting_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;

size_t take(const Arguments& arguments, CommandLineSettings* settings) {
  return take_plain_flag(arguments, 0, FlagOffer::kByRun, settings);
}

TEST(SettingFlags, TakesPlainFlagsWithoutAParser) {
  CommandLineSettings settings;
  EXPECT_EQ(take({"--buffer", "/a"}, &settings), 2u);
  EXPECT_EQ(take({"--buffer", "b"}, &settings), 2u);
  EXPECT_EQ(take({"--no-report"}, &settings), 1u);
  EXPECT_THAT(settings.flags["buffer.directories"], ElementsAre("/a", "b"));
  EXPECT_THAT(settings.flags["report"], ElementsAre("off"));
}

TEST(SettingFlags, LeavesWhatIsNotPlainToTheParser) {
  const std::vector<Arguments> others = {
      {"--buffer"},
      {"--buffer", ""},
      {"--buffer", "--no-report"},
      {"--buffer=/a"},
      {"--buffer", "[a]"},
      {"--bufer", "/a"},
      {"--config", "/a"},
      {"--help"},
      {"--name", "of-up"},
      {"-v"},
      {"-"},
      {"--"},
  };
  for (const Arguments& arguments : others) {
    CommandLineSettings settings;
    EXPECT_EQ(take(arguments, &settings), 0u) << arguments.front();
  }
}

TEST(SettingFlags, LeavesARepetitionToTheParser) {
  CommandLineSettings settings;
  EXPECT_EQ(take({"--ram", "1G"}, &settings), 2u);
  EXPECT_EQ(take({"--ram", "2G"}, &settings), 0u);
  EXPECT_EQ(take({"--no-report"}, &settings), 1u);
  EXPECT_EQ(take({"--no-report"}, &settings), 0u);
}

}  // namespace
}  // namespace cairn::cli
