// SPDX-License-Identifier: Apache-2.0
#include "cli/configuration/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(ConfigFile, ReadsEveryFormOfAnOption) {
  const ConfigFile file = parse_config_text(
      "ram: {capacity: 4G}\n"
      "tiers:\n"
      "  - {name: nvme, directory: /local, capacity: 100G}\n"
      "  - /scratch:1T\n"
      "buffer:\n"
      "  exclude: ['*.log', tmp]\n"
      "report: off\n",
      "job.yaml");
  EXPECT_THAT(file.problems, IsEmpty());
  ASSERT_EQ(file.settings.size(), 4U);
  EXPECT_EQ(file.settings[0].items.front().text, "4G");
  EXPECT_EQ(file.settings[0].source, "job.yaml:1");
  EXPECT_EQ(file.settings[1].items[0].name, "nvme");
  EXPECT_EQ(file.settings[1].items[0].text, "/local:100G");
  EXPECT_EQ(file.settings[1].items[1].source, "job.yaml:4");
  EXPECT_EQ(file.settings[2].items.size(), 2U);
  EXPECT_EQ(file.settings[3].items.front().text, "off");
}

TEST(ConfigFile, CollectsAllMistakesWithTheirLines) {
  const ConfigFile file = parse_config_text(
      "ram:\n"
      "  capcity: 4G\n"
      "ram.capacity: 4G\n"
      "flush: fast\n"
      "evict:\n"
      "  low_percent: 5\n"
      "  low_percent: 6\n"
      "tiers:\n"
      "  - {directory: /local}\n"
      "clients:\n"
      "  max: [1, 2]\n"
      "report:\n",
      "f");
  EXPECT_THAT(
      file.problems,
      ElementsAre(
          HasSubstr("f:2: unknown key \"capcity\" in ram; did you mean \"capacity\"?"),
          HasSubstr("f:3: write \"ram.capacity\" as key \"capacity\" inside \"ram:\""),
          HasSubstr("f:4: \"flush\" is a group"), HasSubstr("f:7: \"low_percent\" is given twice"),
          HasSubstr("f:9: a tier needs a capacity"), HasSubstr("f:11: clients.max takes one value"),
          HasSubstr("f:12: report has no value")));
}

TEST(ConfigFile, AnEmptyFileIsNoMistake) {
  EXPECT_THAT(parse_config_text("", "f").problems, IsEmpty());
  EXPECT_THAT(parse_config_text("# nothing\n", "f").problems, IsEmpty());
}

TEST(ConfigFile, OtherShapesAreMistakes) {
  EXPECT_THAT(parse_config_text("- a\n- b\n", "f").problems,
              ElementsAre(HasSubstr("f:1: a map of options")));
  EXPECT_THAT(parse_config_text("just words", "f").problems,
              ElementsAre(HasSubstr("a map of options")));
  EXPECT_THAT(parse_config_text("a: [b", "f").problems, ElementsAre(HasSubstr("not valid YAML")));
  EXPECT_THAT(parse_config_text("ram: {capacity: 4G}\n---\nram: {capacity: 8G}\n", "f").problems,
              ElementsAre(HasSubstr("f:2: another document begins here")));
  EXPECT_THAT(load_config_file("/no/such/file").problems, ElementsAre(HasSubstr("No such file")));
}

TEST(ConfigFile, TheServiceLearnsWhereAValueCameFrom) {
  const ConfigFile file = parse_config_text(
      "ram:\n  capacity: 4G\nresolved_from:\n  ram.capacity: \"command line\"\n", "f");
  EXPECT_THAT(file.problems, IsEmpty());
  ASSERT_EQ(file.settings.size(), 1U);
  EXPECT_EQ(file.settings[0].source, "command line");
}

}  // namespace
}  // namespace cairn::cli
