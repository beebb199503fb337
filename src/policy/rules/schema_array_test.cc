// SPDX-License-Identifier: Apache-2.0
// Rules that give hints about datasets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/rules/rule_property.h"
#include "policy/rules/schema_file.h"

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ParsedSchema yaml(const std::vector<std::string>& rules) {
  std::string text = "rules:\n";
  for (const std::string& rule : rules) text += "  - {" + rule + "}\n";
  return parse_schema_text(text, "f");
}

TEST(SchemaArray, ArrivesFromBothFormats) {
  const ParsedSchema xml = parse_schema_text(
      "<rules><rule><path>*.h5</path><array>/x chunk=[8] ghost=[1]</array></rule></rules>", "f");
  for (const ParsedSchema& schema :
       {xml, yaml({"path: \"*.h5\", array: \"/x chunk=[8] ghost=[1]\""})}) {
    EXPECT_THAT(schema.problems, IsEmpty());
    ASSERT_EQ(schema.rules.size(), 1U);
    EXPECT_EQ(schema.rules[0].array, "/x chunk=[8] ghost=[1]");
    const std::string text = rules_yaml(schema.rules);
    EXPECT_EQ(rules_yaml(parse_schema_text(text, "c", SchemaOrigin::kResolved).rules), text);
  }
}

TEST(SchemaArray, RulesOfOnePathMaySpeakOfDifferentDatasets) {
  const std::string first = "path: \"*.h5\", array: \"/x chunk=[8]\"";
  EXPECT_THAT(yaml({first, "path: \"*.h5\", array: \"/y chunk=[8]\""}).problems, IsEmpty());
  EXPECT_THAT(yaml({first, "path: \"*.h5\", array: \"/x chunk=[9]\""}).problems,
              ElementsAre(HasSubstr("f:3: array: the rule of line 2 speaks of the same files")));
}

TEST(SchemaArray, WhatIsNoHintIsNamed) {
  for (const auto& [value, said] :
       {std::pair{"/x chunk=[8,", "\"chunk=[8,\" has no list"},
        std::pair{"x chunk=[8]", "no file and dataset are named"},
        std::pair{"/x chunk=[8, 4]", "a list has no blanks"},
        std::pair{"/a:/b chunk=[8]", "a dataset, from"},
        std::pair{"/x chunk=[0]", "chunk of 0 cells"}, std::pair{"/x", "there is no \"chunk=\""}}) {
    EXPECT_THAT(yaml({"path: \"*.h5\", array: \"" + std::string(value) + "\""}).problems,
                ElementsAre(HasSubstr(said)));
  }
  const ParsedSchema xml =
      parse_schema_text("<rules><rule><path>*.h5</path><array>/x</array></rule></rules>", "f");
  EXPECT_THAT(xml.problems, ElementsAre(HasSubstr("there is no \"chunk=\"")));
}

TEST(SchemaArray, SpeaksOfAllFilesOfThePath) {
  const std::string array = "array: \"/x chunk=[8]\"";
  for (const auto& [condition, said] :
       {std::pair{"path: a.h5, size: {min: 1M}", "but the rule has size"},
        std::pair{"path: a.h5, access: read", "but the rule has access"},
        std::pair{"path: a.h5, offset: {end: 1M}", "array: holds for a whole file"},
        std::pair{"path: a.h5, never-buffer: true", "array: has no meaning for a file"},
        std::pair{"path: \"a-{n}.h5\"", "write * in its place"}}) {
    EXPECT_THAT(yaml({std::string(condition) + ", " + array}).problems,
                ElementsAre(HasSubstr(said)));
  }
}

}  // namespace
}  // namespace cairn
