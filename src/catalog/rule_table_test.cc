// SPDX-License-Identifier: Apache-2.0
#include "catalog/rule_table.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace cairn {
namespace {

struct Table {
  std::unique_ptr<std::byte[]> memory{new std::byte[RuleTable::kBytes]()};
  RuleTable rules{memory.get()};
};

RuleRecord rule(const char* pattern, std::uint16_t properties, const ObjectHandling& handling) {
  RuleRecord record;
  std::strcpy(record.pattern, pattern);
  record.properties = properties;
  record.handling = handling.bits();
  return record;
}

RuleQuestion about(const char* path, const char* below) {
  RuleQuestion question;
  question.path = path;
  question.below = below;
  question.reads = true;
  return question;
}

ObjectHandling with_mode(BufferingMode mode) {
  ObjectHandling handling;
  handling.mode = mode;
  return handling;
}

TEST(ObjectHandling, SurvivesPacking) {
  for (unsigned mode = 0; mode < kBufferingModes; ++mode) {
    for (unsigned trigger = 0; trigger < kFlushTriggers; ++trigger) {
      for (unsigned tier = 0; tier <= kTiersMax; ++tier) {
        ObjectHandling handling;
        handling.mode = static_cast<BufferingMode>(mode);
        handling.trigger = static_cast<FlushTrigger>(trigger);
        if (tier < kTiersMax) handling.home = static_cast<TierId>(tier);
        handling.policy = static_cast<std::uint8_t>((mode * 5 + tier) % 16);
        handling.pinned = tier % 2 == 0;
        handling.priority = static_cast<std::uint8_t>(tier % 8);
        handling.prefetch = static_cast<PrefetchHint>(tier % 5);
        EXPECT_EQ(handling.bits() & ~ObjectHandling::kMask, 0u);
        EXPECT_EQ(ObjectHandling::from_bits(handling.bits()), handling);
      }
    }
  }
}

TEST(RuleTable, TheFirstRuleThatDecidesAPropertyCounts) {
  Table table;
  ObjectHandling first = with_mode(BufferingMode::kSync);
  ObjectHandling second = with_mode(BufferingMode::kBypass);
  second.trigger = FlushTrigger::kOnExit;
  const RuleRecord records[] = {
      rule("*.h5", RuleRecord::kMode, first),
      rule("out/*", RuleRecord::kMode | RuleRecord::kTrigger, second),
  };
  table.rules.publish(records);
  const ObjectHandling both = table.rules.decide(about("/d/out/a.h5", "out/a.h5"), {});
  EXPECT_EQ(both.mode, BufferingMode::kSync);
  EXPECT_EQ(both.trigger, FlushTrigger::kOnExit);
  const ObjectHandling only_second = table.rules.decide(about("/d/out/a.txt", "out/a.txt"), {});
  EXPECT_EQ(only_second.mode, BufferingMode::kBypass);
  const ObjectHandling none = table.rules.decide(about("/d/a.txt", "a.txt"), first);
  EXPECT_EQ(none, first);
}

TEST(RuleTable, PatternsAreThoseOfExclude) {
  const auto matches = [](const char* pattern, bool numbers, const char* path, const char* below) {
    RuleRecord record = rule(pattern, RuleRecord::kMode, {});
    record.has_numbers = numbers ? 1 : 0;
    return rule_matches(record, about(path, below));
  };
  EXPECT_TRUE(matches("*.log", false, "/d/x/a.log", "x/a.log"));
  EXPECT_TRUE(matches("/d/*", false, "/d/x/a.log", "x/a.log"));
  EXPECT_TRUE(matches("x/*", false, "/d/x/a.log", "x/a.log"));
  EXPECT_FALSE(matches("y/*", false, "/d/x/a.log", "x/a.log"));
  EXPECT_FALSE(matches("a", false, "/d/x/a.log", "x/a.log"));
  EXPECT_TRUE(matches("step-+([0-9]).h5", true, "/d/step-17.h5", "step-17.h5"));
  EXPECT_FALSE(matches("step-+([0-9]).h5", true, "/d/step-x.h5", "step-x.h5"));
  EXPECT_FALSE(matches("step-+([0-9]).h5", true, "/d/step-.h5", "step-.h5"));
}

TEST(RuleTable, AsksForSizeAccessAndRun) {
  RuleRecord record = rule("*", RuleRecord::kMode, {});
  record.size_min = 10;
  record.size_max = 20;
  record.run = 7;
  record.access = RuleAccess::kRead;
  RuleQuestion question = about("/d/a", "a");
  question.size = 10;
  question.run = 7;
  EXPECT_TRUE(rule_matches(record, question));
  question.writes = true;
  EXPECT_FALSE(rule_matches(record, question));
  question.writes = false;
  question.run = 8;
  EXPECT_FALSE(rule_matches(record, question));
  question.run = 7;
  question.size = 21;
  EXPECT_FALSE(rule_matches(record, question));
}

// Both sets of rules say the same of the file in two properties; a torn reader would mix them.
TEST(RuleTable, ReadersSeeOneSetOfRulesOrTheOther) {
  Table table;
  ObjectHandling one = with_mode(BufferingMode::kSync);
  one.trigger = FlushTrigger::kPerFile;
  ObjectHandling two = with_mode(BufferingMode::kBypass);
  two.trigger = FlushTrigger::kOnExit;
  const auto set = [](const ObjectHandling& handling, std::size_t padding) {
    std::vector<RuleRecord> records(padding, rule("nothing", RuleRecord::kMode, {}));
    records.push_back(rule("*", RuleRecord::kMode, handling));
    records.push_back(rule("*", RuleRecord::kTrigger, handling));
    return records;
  };
  const auto first = set(one, 3);
  const auto second = set(two, 40);
  table.rules.publish(first);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int round = 0; round < 2000; ++round) table.rules.publish(round % 2 == 0 ? second : first);
    stop.store(true);
  });
  int mixed = 0;
  while (!stop.load()) {
    const ObjectHandling seen = table.rules.decide(about("/d/a", "a"), {});
    if (!(seen == one) && !(seen == two)) ++mixed;
  }
  writer.join();
  EXPECT_EQ(mixed, 0);
}

}  // namespace
}  // namespace cairn
