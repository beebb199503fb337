// SPDX-License-Identifier: Apache-2.0
// Random damage to valid schemas: whatever comes out is either rejected with a line or is a schema
// whose rules can be written and read again. CAIRN_SEED repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "policy/rules/rule_property.h"
#include "policy/rules/schema_file.h"

namespace cairn {
namespace {

constexpr int kTexts = 20'000;
constexpr std::chrono::seconds kLongestText{2};

const std::string kXml =
    "<?xml version=\"1.0\"?>\n"
    "<rules>\n"
    "  <!-- exceptions first -->\n"
    "  <rule name=\"checkpoints\">\n"
    "    <path>ckpt-{n}.h5</path>\n"
    "    <size min=\"1M\" max=\"4G\"/>\n"
    "    <access>write</access>\n"
    "    <place tier=\"nvme\" pin=\"true\"/>\n"
    "    <mode>scratch</mode>\n"
    "    <keep>2</keep>\n"
    "    <policy>hot-data</policy><prefetch>random</prefetch>\n"
    "    <reserve>ram:4M</reserve>\n"
    "  </rule>\n"
    "  <rule><path><![CDATA[*.h5]]></path><offset begin=\"4K\" end=\"1M\"/><priority>7</priority>\n"
    "  </rule>\n"
    "  <rule><path>*.log</path><never-buffer>true</never-buffer></rule>\n"
    "</rules>\n";
const std::string kYaml =
    "rules:\n"
    "  # exceptions first\n"
    "  - name: checkpoints\n"
    "    path: ckpt-{n}.h5\n"
    "    size: {min: 1M, max: 4G}\n"
    "    access: write\n"
    "    place: {tier: nvme, pin: true}\n"
    "    mode: scratch\n"
    "    keep: 2\n"
    "    policy: hot-data\n"
    "    reserve: ram:4M\n"
    "  - {path: \"*.h5\", offset: {begin: 4K, end: 1M}, priority: 7}\n"
    "  - path: '*.log'\n"
    "    never-buffer: true\n";

const std::vector<std::string> kPieces = {"<",
                                          ">",
                                          "</rule>",
                                          "<rule>",
                                          "&amp;",
                                          "&#0;",
                                          "&#x41;",
                                          "<![CDATA[",
                                          "]]>",
                                          "<!--",
                                          "-->",
                                          "<?x?>",
                                          "xmlns=\"a\"",
                                          "{n}",
                                          "\"",
                                          "'",
                                          "- ",
                                          ": ",
                                          "\n",
                                          "\n  ",
                                          "&a ",
                                          "*a",
                                          "[",
                                          "]",
                                          "{",
                                          "}",
                                          "|\n",
                                          ">-\n",
                                          "? ",
                                          "!!int ",
                                          "---\n",
                                          "...\n",
                                          "%TAG ",
                                          "\t",
                                          "\xC3\xA9",
                                          "#",
                                          "99999999999999999999",
                                          "-1",
                                          "true",
                                          "null",
                                          "~",
                                          "<<: ",
                                          "\\"};

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  std::string damaged(std::string text) {
    const std::size_t wounds = 1 + below(6);
    for (std::size_t count = 0; count < wounds; ++count) wound(&text);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  void wound(std::string* text) {
    const std::size_t at = below(text->size());
    const std::size_t length = below(std::min<std::size_t>(40, text->size() - at)) + 1;
    switch (below(7)) {
      case 0:
        if (!text->empty()) (*text)[at] = static_cast<char>(below(256));
        break;
      case 1:
        text->erase(at, length);
        break;
      case 2:
        text->insert(below(text->size()), text->substr(at, length));
        break;
      case 3:
        text->insert(at, kPieces[below(kPieces.size())]);
        break;
      case 4:
        if (!text->empty()) (*text)[at] = static_cast<char>((*text)[at] ^ (1 << below(8)));
        break;
      case 5: {
        const std::string& piece = kPieces[below(kPieces.size())];
        for (std::size_t count = below(300); count > 0; --count) text->insert(at, piece);
        break;
      }
      default:
        if (below(10) == 0) text->resize(at);
        break;
    }
  }

  std::mt19937_64 random_;
};

// "f:LINE: what is wrong"
bool names_its_place(std::string_view problem) {
  if (!problem.starts_with("f:")) return false;
  problem.remove_prefix(2);
  const std::size_t digits = problem.find_first_not_of("0123456789");
  if (digits == 0 || digits == problem.npos || problem.front() == '0') return false;
  problem.remove_prefix(digits);
  return problem.starts_with(": ") && problem.size() > 2;
}

void judge(const std::string& text, unsigned* accepted) {
  const auto start = std::chrono::steady_clock::now();
  const ParsedSchema schema = parse_schema_text(text, "f");
  ASSERT_LT(std::chrono::steady_clock::now() - start, kLongestText) << text;
  for (const std::string& problem : schema.problems) {
    ASSERT_TRUE(names_its_place(problem)) << problem << "\n" << text;
  }
  if (!schema.problems.empty()) {
    ASSERT_TRUE(schema.rules.empty()) << text;
    return;
  }
  ++*accepted;
  const std::string written = rules_yaml(schema.rules);
  const ParsedSchema again = parse_schema_text(written, "g", SchemaOrigin::kResolved);
  ASSERT_TRUE(again.problems.empty()) << again.problems.front() << "\n" << text << "\n" << written;
  ASSERT_EQ(rules_yaml(again.rules), written) << text;
}

TEST(SchemaFuzz, DamagedSchemasAreRejectedWithALineOrAreWhole) {
  const char* given = std::getenv("CAIRN_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::printf("CAIRN_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Damage damage(seed);
  unsigned accepted = 0;
  for (int count = 0; count < kTexts && !::testing::Test::HasFatalFailure(); ++count) {
    judge(damage.damaged(count % 2 == 0 ? kXml : kYaml), &accepted);
  }
  // Else the damage is so great that nothing but the parsers was tested.
  EXPECT_GT(accepted, static_cast<unsigned>(kTexts / 100));
  EXPECT_LT(accepted, static_cast<unsigned>(kTexts / 2));
}

TEST(SchemaFuzz, TheTextsBeforeTheDamageAreInOrder) {
  for (const std::string& text : {kXml, kYaml}) {
    const ParsedSchema schema = parse_schema_text(text, "f");
    EXPECT_TRUE(schema.problems.empty()) << schema.problems.front();
    EXPECT_EQ(schema.rules.size(), 3U);
  }
}

}  // namespace
}  // namespace cairn
