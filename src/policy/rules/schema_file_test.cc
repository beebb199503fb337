// SPDX-License-Identifier: Apache-2.0
#include "policy/rules/schema_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <fstream>
#include <sstream>
#include <string>

#include "policy/rules/rule_property.h"
#include "policy/rules/xml_tree.h"

namespace cairn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// One rule in both formats: it begins in line 2, and what is passed in line 3.
std::string xml_rule(const std::string& fields) {
  return "<rules>\n<rule><path>*.h5</path>\n" + fields + "\n</rule></rules>\n";
}
std::string yaml_rule(const std::string& fields) {
  return "rules:\n  - path: \"*.h5\"\n" + fields + "\n";
}

// The rules without what the two formats do not share.
std::string meaning(std::vector<FileRule> rules) {
  for (FileRule& rule : rules) rule.source.clear();
  return rules_yaml(rules);
}

struct Mistake {
  const char* xml;
  const char* yaml;
  int line;
  const char* says;
  bool by_form = true;  // schema.xsd alone finds it too
};

std::ostream& operator<<(std::ostream& stream, const Mistake& mistake) {
  return stream << mistake.yaml;
}

class SchemaMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(SchemaMistake, IsReportedOnceWithItsLineInBothFormats) {
  const Mistake& mistake = GetParam();
  const std::string place = "f:" + std::to_string(mistake.line) + ": ";
  const ParsedSchema of_xml = parse_schema_text(xml_rule(mistake.xml), "f");
  EXPECT_THAT(of_xml.problems, ElementsAre(AllOf(StartsWith(place), HasSubstr(mistake.says))));
  EXPECT_THAT(of_xml.rules, IsEmpty());
  const ParsedSchema of_yaml = parse_schema_text(yaml_rule(mistake.yaml), "f");
  EXPECT_THAT(of_yaml.problems, ElementsAre(AllOf(StartsWith(place), HasSubstr(mistake.says))));
  EXPECT_THAT(of_yaml.rules, IsEmpty());
}

TEST_P(SchemaMistake, OfFormIsFoundByTheXsdAsWell) {
  const SchemaDocument document = read_xml_tree(xml_rule(GetParam().xml));
  EXPECT_TRUE(document.well_formed);
  EXPECT_EQ(!document.problems.empty(), GetParam().by_form)
      << (document.problems.empty() ? "no problem" : document.problems.front().text);
}

constexpr Mistake kMistakesOfForm[] = {
    {"<colour>red</colour>", "    colour: red", 3, "\"colour\" in rule; there is name, path, size"},
    {"<mod>scratch</mod>", "    mod: scratch", 3, "\"mod\" in rule; did you mean \"mode\"?"},
    {"<mode>scratchy</mode>", "    mode: scratchy", 3,
     "mode: \"scratchy\" is not persistent-async, persistent-sync, scratch or bypass. Did you mean "
     "\"scratch\"?"},
    {"<mode>scratch</mode>\n<mode>scratch</mode>", "    mode: scratch\n    mode: scratch", 4,
     "\"mode\" is given twice in rule"},
    {"<mode/>", "    mode:", 3, "\"mode\" has no value"},
    {"<mode><x/></mode>", "    mode: {x: 1}", 3, "\"mode\" takes one value"},
    {"<trigger>never</trigger>", "    trigger: never", 3, "trigger: \"never\" is not periodic"},
    {"<access>append</access><mode>scratch</mode>", "    access: append\n    mode: scratch", 3,
     "access: \"append\" is not any, read, write or read-write"},
    {"<prefetch>wilneed</prefetch>", "    prefetch: wilneed", 3, "Did you mean \"will-need\"?"},
    {"<policy>max-locallity</policy>", "    policy: max-locallity", 3,
     "Did you mean \"max-locality\"?"},
    {"<policy>./mine.so</policy>", "    policy: ./mine.so", 3, "is not an absolute path"},
    {"<priority>8</priority>", "    priority: 8", 3,
     "priority: \"8\" is not a whole number from 0 to 7"},
    {"<priority>-1</priority>", "    priority: -1", 3, "priority: \"-1\" is not"},
    {"<reserve>ram=1G</reserve>", "    reserve: ram=1G", 3,
     "reserve: \"ram=1G\" is not a size such as 2G, or a tier's name and a size"},
    {"<place tier=\"a b\"/>", "    place: {tier: a b}", 3, "tier: \"a b\" is not a tier's name"},
    {"<place pin=\"yes\"/>", "    place: {pin: yes}", 3, "pin: \"yes\" is not true or false"},
    {"<place tire=\"ram\"/>", "    place: {tire: ram}", 3,
     "\"tire\" in place; did you mean \"tier\"?"},
    {"<never-buffer>always</never-buffer>", "    never-buffer: always", 3,
     "never-buffer: \"always\" is not true or false"},
    {"<mode>scratch</mode><size min=\"1X\"/>", "    size: {min: 1X}\n    mode: scratch", 3,
     "min: \"1X\" is not a size such as"},
    {"<mode>scratch</mode><size least=\"1M\"/>", "    size: {least: 1M}\n    mode: scratch", 3,
     "\"least\" in size; there is min or max"},
    {"<mode>scratch</mode><size>1M</size>", "    size: 1M\n    mode: scratch", 3,
     "\"size\" takes no text"},
};
INSTANTIATE_TEST_SUITE_P(OfForm, SchemaMistake, ::testing::ValuesIn(kMistakesOfForm));

constexpr Mistake kContradictions[] = {
    {"", "", 2, "a rule that sets nothing", false},
    {"<mode>scratch</mode><size/>", "    size: {}\n    mode: scratch", 3, "\"size\" says nothing",
     false},
    {"<mode>scratch</mode>\n<size min=\"2M\" max=\"1M\"/>",
     "    mode: scratch\n    size: {min: 2M, max: 1M}", 4, "size: min (2M) is above max (1M)",
     false},
    {"<priority>1</priority>\n<offset begin=\"4K\" end=\"4K\"/>",
     "    priority: 1\n    offset: {begin: 4K, end: 4K}", 4,
     "offset: begin (4K) is not below end (4K)", false},
    {"<priority>1</priority>\n<offset begin=\"4K\"/><size max=\"4K\"/>",
     "    priority: 1\n    offset: {begin: 4K}\n    size: {max: 4K}", 4, "has no byte at 4K",
     false},
    {"<never-buffer>true</never-buffer>\n<place tier=\"ram\"/>",
     "    never-buffer: true\n    place: {tier: ram}", 4, "tier: has no meaning for a file", false},
    {"<never-buffer>true</never-buffer>\n<place pin=\"true\"/>",
     "    never-buffer: true\n    place: {pin: true}", 4, "pin: has no meaning for a file", false},
    {"<never-buffer>true</never-buffer>\n<mode>scratch</mode>",
     "    never-buffer: true\n    mode: scratch", 4,
     "mode: never-buffer is the mode bypass already", false},
    {"<never-buffer>true</never-buffer>\n<trigger>per-file</trigger>",
     "    never-buffer: true\n    trigger: per-file", 4, "trigger: has no meaning", false},
    {"<mode>bypass</mode>\n<policy>hot-data</policy>", "    mode: bypass\n    policy: hot-data", 4,
     "policy: has no meaning for a file that is not buffered (mode bypass)", false},
    {"<mode>persistent-sync</mode>\n<trigger>per-file</trigger>",
     "    mode: persistent-sync\n    trigger: per-file", 4,
     "trigger: belongs to mode persistent-async, not to persistent-sync", false},
    {"<mode>scratch</mode>\n<keep>2</keep>", "    mode: scratch\n    keep: 2", 4,
     "keep: counts generations, but the path has no {n}", false},
    {"<offset end=\"4K\"/>\n<mode>scratch</mode>", "    offset: {end: 4K}\n    mode: scratch", 4,
     "mode: holds for a whole file", false},
    {"<offset end=\"4K\"/>\n<trigger>on-exit</trigger>",
     "    offset: {end: 4K}\n    trigger: on-exit", 4, "trigger: holds for a whole file", false},
    {"<offset end=\"4K\"/>\n<policy>hot-data</policy>",
     "    offset: {end: 4K}\n    policy: hot-data", 4, "policy: holds for a whole file", false},
    {"<offset end=\"4K\"/>\n<prefetch>none</prefetch>", "    offset: {end: 4K}\n    prefetch: none",
     4, "prefetch: holds for a whole file", false},
};
INSTANTIATE_TEST_SUITE_P(Contradictions, SchemaMistake, ::testing::ValuesIn(kContradictions));

TEST(SchemaFile, MistakesOfAllRulesAreReportedAtOnceInTheirOrder) {
  const ParsedSchema schema = parse_schema_text(
      "rules:\n"
      "  - {name: a, path: \"*.h5\", mode: scratch}\n"
      "  - name: a\n"
      "    path: \"*.h5\"\n"
      "    mode: bypass\n"
      "  - mode: scratch\n"
      "  - {path: \"{n}-{n}\", priority: 1}\n",
      "job.yaml");
  EXPECT_THAT(
      schema.problems,
      ElementsAre(
          HasSubstr("job.yaml:3: name: rule \"a\" (line 2) has this name too"),
          HasSubstr("job.yaml:5: mode: rule \"a\" (line 2) speaks of the same files and sets mode "
                    "to scratch, not bypass"),
          HasSubstr("job.yaml:6: a rule needs a path"),
          HasSubstr("job.yaml:7: path: more than one {n}")));
}

TEST(SchemaFile, NeverBufferContradictsAnotherModeOfTheSameFiles) {
  const ParsedSchema schema = parse_schema_text(
      "rules:\n"
      "  - {path: a, mode: scratch}\n"
      "  - {path: a, never-buffer: true}\n"
      "  - {path: a, size: {min: 1}, never-buffer: true}\n",
      "f");
  EXPECT_THAT(schema.problems, ElementsAre(HasSubstr("f:3: never-buffer: the rule of line 2")));
}

TEST(SchemaFile, LongTextsAreMistakes) {
  const std::string path(200, 'p');
  EXPECT_THAT(parse_schema_text("rules: [{mode: scratch, path: " + path + "}]", "f").problems,
              ElementsAre(HasSubstr("f:1: path: longer than 199 bytes")));
  EXPECT_THAT(
      parse_schema_text("rules: [{mode: scratch, path: a, name: " + path + "}]", "f").problems,
      ElementsAre(HasSubstr("f:1: name: longer than 63 bytes")));
  EXPECT_THAT(parse_schema_text("rules: [{mode: scratch, path: \"a\\nb\"}]", "f").problems,
              ElementsAre(HasSubstr("f:1: \"path\" contains a line break")));
}

TEST(SchemaFile, ATextThatIsNotXmlHasTheLineOfTheFirstMistake) {
  EXPECT_THAT(parse_schema_text("<rules>\n<rule>\n</rules>\n", "f").problems.front(),
              AllOf(StartsWith("f:3: "), HasSubstr("tag mismatch")));
  EXPECT_THAT(parse_schema_text("", "f.xml").problems, ElementsAre(StartsWith("f.xml:1: ")));
  EXPECT_THAT(parse_schema_text("<rules/>", "f").problems, IsEmpty());
}

TEST(SchemaFile, WhatOnlyTheXsdKnowsIsReported) {
  // The name as an element, and a namespace of another kind of file.
  EXPECT_THAT(
      parse_schema_text(
          "<rules>\n<rule>\n<name>a</name><path>b</path><mode>scratch</mode></rule></rules>", "f")
          .problems,
      ElementsAre(AllOf(StartsWith("f:3: "), HasSubstr("'name'"))));
  EXPECT_THAT(parse_schema_text("<rules xmlns=\"urn:other\"/>", "f").problems,
              ElementsAre(AllOf(StartsWith("f:1: "), HasSubstr("rules"))));
}

TEST(SchemaFile, AnotherRootIsAMistake) {
  EXPECT_THAT(parse_schema_text("<schema/>", "f").problems,
              ElementsAre(HasSubstr("f:1: \"schema\" is not what a schema begins with")));
  EXPECT_THAT(parse_schema_text("rule: []", "f").problems,
              ElementsAre(HasSubstr("f:1: unknown key \"rule\"; a schema is \"rules:\"")));
  EXPECT_THAT(parse_schema_text("", "f").problems, ElementsAre(HasSubstr("f:1: a schema is")));
  EXPECT_THAT(parse_schema_text("- a", "f").problems, ElementsAre(HasSubstr("f:1: a schema is")));
  EXPECT_THAT(parse_schema_text("rules: {path: a}", "f").problems,
              ElementsAre(HasSubstr("f:1: \"rules\" takes a list")));
  EXPECT_THAT(parse_schema_text("rules:\n  - a", "f").problems,
              ElementsAre(HasSubstr("f:2: each rule is a map")));
  EXPECT_THAT(parse_schema_text("rules:\n  - {path: a, mode: [b]}", "f").problems,
              ElementsAre(HasSubstr("f:2: \"mode\" does not take a list")));
}

TEST(SchemaFile, APatternWithoutQuotesIsExplained) {
  EXPECT_THAT(parse_schema_text("rules:\n  - path: *.h5\n    mode: scratch\n", "f").problems,
              ElementsAre(AllOf(StartsWith("f:2: not valid YAML"), HasSubstr("in quotes"))));
}

TEST(SchemaFile, NothingIsDroppedInSilence) {
  EXPECT_THAT(parse_schema_text("rules: []\n---\nrules: []\n", "f").problems,
              ElementsAre(HasSubstr("f:2: another document begins here")));
  EXPECT_THAT(parse_schema_text("rules: []\nrules: []\n", "f").problems,
              ElementsAre(HasSubstr("f:2: \"rules\" is given twice")));
  // A comma begins no document and ends none.
  EXPECT_THAT(parse_schema_text(", rules: []\n", "f").problems.front(), StartsWith("f:1: "));
  const std::string end_of_text = "rules: []\n\x04\nrubbish: 1\n";
  EXPECT_THAT(parse_schema_text(end_of_text, "f").problems,
              ElementsAre(HasSubstr("f:2: a control character (0x04)")));
  EXPECT_THAT(parse_schema_text(std::string("rules: []\n\0", 11), "f").problems,
              ElementsAre(HasSubstr("f:2: a control character (0x00)")));
  EXPECT_THAT(parse_schema_text("rules:\n  - {path: caf\xE9, mode: scratch}\n", "f").problems,
              ElementsAre(HasSubstr("f:2: not UTF-8")));
  // An overlong slash, a surrogate, and what is beyond the last code point.
  for (const char* bytes : {"\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"}) {
    EXPECT_THAT(parse_schema_text(bytes, "f").problems, ElementsAre(HasSubstr("not UTF-8")));
  }
  EXPECT_THAT(parse_schema_text(yaml_rule("    mode: scratch\n    name: \"caf\u00e9 \u20ac\""), "f")
                  .problems,
              IsEmpty());
}

TEST(SchemaFile, TheSizeIsBounded) {
  EXPECT_THAT(parse_schema_text(std::string((1U << 20) + 1, ' '), "f").problems,
              ElementsAre(HasSubstr("f:1: the file is larger than 1 MiB")));
  EXPECT_THAT(parse_schema_text(std::string(70'000, '\n'), "f").problems,
              ElementsAre(HasSubstr("more than 65535 lines")));
  std::string xml = "<rules>\n";
  std::string yaml = "rules:\n";
  for (int index = 0; index <= 1024; ++index) {
    const std::string number = std::to_string(index);
    xml += "<rule><path>" + number + "</path><mode>scratch</mode></rule>\n";
    yaml += "  - {path: \"" + number + "\", mode: scratch}\n";
  }
  xml += "</rules>";
  for (const std::string& text : {xml, yaml}) {
    EXPECT_THAT(parse_schema_text(text, "f").problems,
                ElementsAre(HasSubstr("f:1026: more than 1024 rules")));
  }
}

TEST(SchemaFile, TheDepthIsBounded) {
  std::string xml = "<rules>";
  std::string yaml = "rules: [";
  for (int index = 0; index < 200; ++index) xml += "<rule>";
  for (int index = 0; index < 200; ++index) yaml += "{a: ";
  for (int index = 0; index < 200; ++index) xml += "</rule>";
  yaml += "1" + std::string(200, '}') + "]";
  EXPECT_FALSE(parse_schema_text(xml + "</rules>", "f").problems.empty());
  EXPECT_THAT(parse_schema_text(yaml, "f").problems.front(), HasSubstr("nested too deeply"));
  for (const std::string& opening : {std::string("["), std::string("{a: "), std::string("<a>")}) {
    std::string deep;
    while (deep.size() < 300'000) deep += opening;
    EXPECT_FALSE(parse_schema_text(deep, "f").problems.empty());
  }
}

TEST(SchemaFile, EntitiesAreRefused) {
  EXPECT_THAT(
      parse_schema_text("<?xml version=\"1.0\"?>\n<!DOCTYPE rules [\n<!ENTITY a \"aaaaaaaaaa\">\n"
                        "<!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>\n"
                        "<rules><rule><path>&b;</path></rule></rules>",
                        "f")
          .problems,
      ElementsAre(HasSubstr("f:2: a document type (DOCTYPE) is not allowed")));
  EXPECT_THAT(parse_schema_text("<rules>\n<rule><path>&b;</path></rule></rules>", "f").problems,
              ElementsAre(AllOf(StartsWith("f:2: "), HasSubstr("Entity 'b' not defined"))));
}

TEST(SchemaFile, AliasesCannotMakeItEndless) {
  EXPECT_THAT(parse_schema_text("rules: &a\n  - &b {path: *b}\n", "f").problems.front(),
              HasSubstr("nested too deeply"));
  std::string bomb = "rules:\n  - &r0 {size: {min: 1}, place: {pin: true}}\n";
  for (int index = 1; index < 12; ++index) {
    const std::string previous = "*r" + std::to_string(index - 1);
    bomb += "  - &r" + std::to_string(index) + " {";
    for (const char* key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
      bomb += std::string(key) + ": " + previous + ", ";
    }
    bomb += "i: 1}\n";
  }
  EXPECT_FALSE(parse_schema_text(bomb, "f").problems.empty());
}

// Files of a test, gone with it.
class SchemaOnDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/cairn-schema-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    ::alarm(0);
    (void)!::system(("rm -rf " + directory_).c_str());
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ + "/" + name) << text;
    return directory_ + "/" + name;
  }
  // A program that opens it to read waits for ever: the test would be killed.
  std::string trap() const {
    const std::string path = directory_ + "/trap";
    ::mkfifo(path.c_str(), 0600);
    ::alarm(10);
    return path;
  }
  std::string directory_;
};

TEST_F(SchemaOnDisk, NothingThatASchemaNamesIsOpened) {
  const std::string path = trap();
  EXPECT_FALSE(
      parse_schema_text("<!DOCTYPE rules SYSTEM \"" + path + "\"><rules/>", "f").problems.empty());
  EXPECT_FALSE(parse_schema_text("<!DOCTYPE rules [<!ENTITY x SYSTEM \"" + path +
                                     "\">]><rules><rule><path>&x;</path></rule></rules>",
                                 "f")
                   .problems.empty());
  // For editors alone, and it neither loosens nor tightens what holds.
  const std::string head =
      "<rules xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xsi:noNamespaceSchemaLocation=\"" +
      path + "\">\n";
  EXPECT_THAT(parse_schema_text(head + "</rules>", "f").problems, IsEmpty());
  EXPECT_THAT(parse_schema_text(head + "<rule><path>a</path><name>b</name>"
                                       "<mode>scratch</mode></rule></rules>",
                                "f")
                  .problems,
              ElementsAre(StartsWith("f:2: ")));
}

TEST_F(SchemaOnDisk, TheEncodingOfTheDeclarationIsNotBelieved) {
  EXPECT_THAT(parse_schema_text("<?xml version=\"1.0\" encoding=\"UTF-7\"?>\n<rules>\n<rule><path>"
                                "+ACo-</path><mode>scratch</mode></rule></rules>",
                                "f")
                  .rules.at(0)
                  .pattern,
              "+ACo-");
}

TEST_F(SchemaOnDisk, WhatIsNoFileIsAMistake) {
  EXPECT_THAT(load_schema(directory_ + "/none").problems,
              ElementsAre(HasSubstr("/none: No such file")));
  EXPECT_THAT(load_schema(directory_).problems, ElementsAre(HasSubstr("Is a directory")));
  EXPECT_THAT(load_schema(trap()).problems, ElementsAre(HasSubstr("is not a regular file")));
  EXPECT_THAT(load_schema("/dev/zero").problems, ElementsAre(HasSubstr("is not a regular file")));
}

TEST_F(SchemaOnDisk, TheFormatIsSeenByTheContentThenByTheName) {
  const std::string xml = file("a.yaml", xml_rule("<mode>scratch</mode>"));
  const std::string yaml = file("b", "\xEF\xBB\xBF" + yaml_rule("    mode: scratch"));
  const ParsedSchema first = load_schema(xml);
  const ParsedSchema second = load_schema(yaml);
  EXPECT_THAT(first.problems, IsEmpty());
  ASSERT_EQ(first.rules.size(), 1U);
  EXPECT_EQ(first.rules[0].source, xml + ":2");
  EXPECT_EQ(meaning(first.rules), meaning(second.rules));
}

// The text between ```LANGUAGE and ``` of a document of the source tree.
std::string example_of(const std::string& document, const std::string& language) {
  const std::size_t begin = document.find("\n```" + language + "\n") + language.size() + 5;
  return document.substr(begin, document.find("\n```", begin) + 1 - begin);
}

TEST(SchemaFile, TheExamplesOfTheDocumentMeanTheSame) {
  std::array<char, PATH_MAX> executable{};
  ASSERT_GT(::readlink("/proc/self/exe", executable.data(), executable.size() - 1), 0);
  const std::string tests(executable.data());
  std::ifstream stream(tests.substr(0, tests.rfind('/')) + "/../../../docs/schemas.md");
  ASSERT_TRUE(stream.good());
  std::stringstream document;
  document << stream.rdbuf();
  const ParsedSchema xml = parse_schema_text(example_of(document.str(), "xml"), "x");
  const ParsedSchema yaml = parse_schema_text(example_of(document.str(), "yaml"), "y");
  EXPECT_THAT(xml.problems, IsEmpty());
  EXPECT_THAT(yaml.problems, IsEmpty());
  ASSERT_EQ(xml.rules.size(), 5U);
  EXPECT_EQ(meaning(xml.rules), meaning(yaml.rules));
}

TEST(SchemaFile, EveryFieldArrivesFromBothFormats) {
  const ParsedSchema xml = parse_schema_text(
      xml_rule("<size min=\"1K\" max=\"2M\"/>"
               "<access>read-write</access><place tier=\"nvme\" pin=\"true\"/>"
               "<policy>/opt/p.so</policy><priority>0</priority><prefetch>none</prefetch>"
               "<reserve>nvme:10G</reserve>"),
      "f");
  const ParsedSchema yaml =
      parse_schema_text(yaml_rule("    size: {min: 1K, max: 2M}\n"
                                  "    access: read-write\n    place: {tier: nvme, pin: true}\n"
                                  "    policy: /opt/p.so\n    priority: 0\n    prefetch: none\n"
                                  "    reserve: nvme:10G"),
                        "f");
  for (const ParsedSchema& schema : {xml, yaml}) {
    EXPECT_THAT(schema.problems, IsEmpty());
    ASSERT_EQ(schema.rules.size(), 1U);
    const FileRule& rule = schema.rules[0];
    EXPECT_EQ(rule.pattern, "*.h5");
    EXPECT_EQ(rule.size_min, 1024U);
    EXPECT_EQ(rule.size_max, 2U << 20);
    EXPECT_FALSE(rule.speaks_of_part());
    EXPECT_EQ(rule.access, RuleAccess::kReadWrite);
    EXPECT_EQ(rule.tier, "nvme");
    EXPECT_EQ(rule.pinned, true);
    EXPECT_EQ(rule.policy, "/opt/p.so");
    EXPECT_EQ(rule.priority, 0U);
    EXPECT_EQ(rule.prefetch, PrefetchHint::kNone);
    EXPECT_EQ(rule.reserve, (Reservation{"nvme", std::uint64_t{10} << 30}));
    EXPECT_FALSE(rule.mode || rule.trigger || rule.keep);
    EXPECT_EQ(rule.source, "f:2");
  }
  const ParsedSchema xml_part = parse_schema_text(
      xml_rule("<offset begin=\"4096\" end=\"1M\"/><never-buffer>true</never-buffer>"), "f");
  const ParsedSchema yaml_part = parse_schema_text(
      yaml_rule("    offset: {begin: 4096, end: 1M}\n    never-buffer: true"), "f");
  for (const ParsedSchema& schema : {xml_part, yaml_part}) {
    EXPECT_THAT(schema.problems, IsEmpty());
    ASSERT_EQ(schema.rules.size(), 1U);
    EXPECT_EQ(schema.rules[0].offset_begin, 4096U);
    EXPECT_EQ(schema.rules[0].offset_end, 1U << 20);
    EXPECT_EQ(schema.rules[0].mode, BufferingMode::kBypass);
  }
  const ParsedSchema modes = parse_schema_text(
      "rules:\n  - {path: \"s-{n}\", mode: persistent-async, trigger: on-exit, keep: 3}\n"
      "  - {path: b, never-buffer: true}\n  - {path: c, never-buffer: false, mode: scratch}\n",
      "f");
  ASSERT_EQ(modes.rules.size(), 3U);
  EXPECT_EQ(modes.rules[0].mode, BufferingMode::kAsync);
  EXPECT_EQ(modes.rules[0].trigger, FlushTrigger::kOnExit);
  EXPECT_EQ(modes.rules[0].keep, 3U);
  EXPECT_EQ(modes.rules[1].mode, BufferingMode::kBypass);
  EXPECT_EQ(modes.rules[2].mode, BufferingMode::kScratch);
}

TEST(SchemaFile, ResolvedRulesKeepTheirSource) {
  const ParsedSchema schema = parse_schema_text(
      yaml_rule(
          "    name: \"a \\\"b\\\"\"\n    place: {tier: nvme, pin: false}\n    mode: scratch\n"
          "    reserve: ram:2M"),
      "odd \"name\"\n.yaml");
  ASSERT_EQ(schema.rules.size(), 1U);
  const std::string text = rules_yaml(schema.rules);
  const ParsedSchema again = parse_schema_text(text, "config", SchemaOrigin::kResolved);
  EXPECT_THAT(again.problems, IsEmpty());
  ASSERT_EQ(again.rules.size(), 1U);
  EXPECT_EQ(again.rules[0].source, "odd \"name\"\n.yaml:2");
  EXPECT_EQ(rules_yaml(again.rules), text);
  EXPECT_THAT(parse_schema_text(text, "f").problems,
              ElementsAre(HasSubstr("unknown key \"source\"")))
      << "a user cannot say where a rule came from";
}

}  // namespace
}  // namespace cairn
