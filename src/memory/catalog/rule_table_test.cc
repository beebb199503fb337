// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/rule_table.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

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
        handling.parts = static_cast<std::uint8_t>((mode * 9 + tier) % 32);
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

PartStatement blocks(std::uint32_t first, std::uint32_t last, PartProperty property,
                     std::uint8_t value) {
  PartStatement statement;
  statement.first_block = first;
  statement.last_block = last;
  statement.property = property;
  statement.value = value;
  return statement;
}

TEST(RuleTable, PartsAreDecidedBlockByBlockAndLeaveTheRestOpen) {
  Table table;
  PartTable& parts = table.rules.parts();
  ObjectHandling whole;
  whole.home = static_cast<TierId>(1);
  RuleRecord head = rule("*.h5", RuleRecord::kHome | RuleRecord::kPinned, {});
  head.part_home = parts.add(blocks(0, 3, PartProperty::kHome, 2));
  head.part_pinned = parts.add(blocks(0, 3, PartProperty::kPinned, 1));
  RuleRecord middle = rule("*", RuleRecord::kHome, {});
  middle.part_home = parts.add(blocks(2, 5, PartProperty::kHome, 3));
  RuleRecord late = rule("*", RuleRecord::kHome, {});
  late.part_home = parts.add(blocks(0, UINT32_MAX, PartProperty::kHome, 4));
  const RuleRecord records[] = {head, middle, rule("*", RuleRecord::kHome, whole), late};
  table.rules.publish(records);

  const ObjectHandling handling = table.rules.decide(about("/d/a.h5", "a.h5"), {});
  EXPECT_EQ(handling.home, static_cast<TierId>(1)) << "the rule for whole files decides the rest";
  ASSERT_NE(handling.parts, 0);
  const auto at = [&](std::uint32_t number) {
    return parts.of(handling.parts, static_cast<BlockNumber>(number));
  };
  EXPECT_EQ(at(0).home, static_cast<TierId>(2));
  EXPECT_EQ(at(3).home, static_cast<TierId>(2)) << "the first rule decides";
  EXPECT_EQ(at(3).pinned, true);
  EXPECT_EQ(at(4).home, static_cast<TierId>(3));
  EXPECT_EQ(at(4).pinned, std::nullopt);
  EXPECT_EQ(at(6).home, std::nullopt) << "decided for the whole file before the last rule";
  EXPECT_FALSE(parts.keeps_any_out(handling.parts));

  EXPECT_EQ(table.rules.decide(about("/d/b.h5", "b.h5"), {}).parts, handling.parts)
      << "files under the same rules share a set";
  const ObjectHandling other = table.rules.decide(about("/d/a", "a"), {});
  EXPECT_NE(other.parts, handling.parts);
  EXPECT_EQ(parts.of(other.parts, BlockNumber{0}).home, std::nullopt);
}

TEST(RuleTable, AllBlocksAreOfTheAccountOfTheFirstRuleThatReserves) {
  Table table;
  PartTable& parts = table.rules.parts();
  RuleRecord none = rule("*.log", RuleRecord::kAccount, {});
  RuleRecord first = rule("in/*", RuleRecord::kAccount, {});
  first.account_statement = parts.add(blocks(0, UINT32_MAX, PartProperty::kAccount, 50));
  RuleRecord second = rule("*", RuleRecord::kAccount | RuleRecord::kPinned, {});
  second.account_statement = parts.add(blocks(0, UINT32_MAX, PartProperty::kAccount, 51));
  const RuleRecord records[] = {none, first, second};
  table.rules.publish(records);
  const auto account = [&](const char* path, const char* below, std::uint32_t number) {
    const ObjectHandling handling = table.rules.decide(about(path, below), {});
    return parts.of(handling.parts, static_cast<BlockNumber>(number)).account;
  };
  EXPECT_EQ(account("/d/in/a", "in/a", 0), static_cast<AccountId>(50));
  EXPECT_EQ(account("/d/in/a", "in/a", UINT32_MAX), static_cast<AccountId>(50));
  EXPECT_EQ(account("/d/a", "a", 0), static_cast<AccountId>(51));
  EXPECT_EQ(account("/d/in/a.log", "in/a.log", 0), std::nullopt) << "a rule may except files";
  EXPECT_EQ(table.rules.decide(about("/d/in/a.log", "in/a.log"), {}).parts, 0);
}

TEST(PartTable, EqualStatementsAndSetsShareANumberUntilThereIsNoRoom) {
  Table table;
  PartTable& parts = table.rules.parts();
  EXPECT_EQ(parts.add(blocks(0, 1, PartProperty::kNeverBuffer, 1)), 1);
  EXPECT_EQ(parts.add(blocks(0, 1, PartProperty::kNeverBuffer, 1)), 1);
  for (unsigned more = 2; more <= PartTable::kStatementsMax; ++more)
    EXPECT_EQ(parts.add(blocks(more, more, PartProperty::kHome, 1)), more);
  EXPECT_EQ(parts.add(blocks(1, 2, PartProperty::kHome, 1)), 0);
  EXPECT_EQ(parts.intern({}), 0);
  for (unsigned number = 1; number <= PartTable::kSetsMax; ++number) {
    PartSet set;
    ASSERT_TRUE(set.add(static_cast<std::uint8_t>(number)));
    EXPECT_EQ(parts.intern(set), number);
    EXPECT_EQ(parts.intern(set), number);
    EXPECT_EQ(parts.keeps_any_out(static_cast<std::uint8_t>(number)), number == 1);
  }
  PartSet full;
  while (full.add(7)) {
  }
  EXPECT_EQ(full.statements[PartSet::kStatementsMax - 1], 7);
  EXPECT_EQ(parts.intern(full), 0) << "treated alike when the node knows too many combinations";
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

// The service may die between any two words that it writes: the rules then are those before.
TEST(RuleTable, AWriterThatDiesLeavesTheRulesAsTheyWere) {
  void* shared =
      ::mmap(nullptr, RuleTable::kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  RuleTable table(shared);
  ObjectHandling pinned;
  pinned.pinned = true;
  table.publish(std::vector<RuleRecord>{rule("*.log", RuleRecord::kPinned, pinned)});
  // The second half of what it publishes cannot be read.
  constexpr std::size_t kPages = 16;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  auto* source = static_cast<char*>(::mmap(nullptr, 2 * kPages * page, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(static_cast<void*>(source), MAP_FAILED);
  constexpr std::size_t kRules = 40;
  auto* rules =
      reinterpret_cast<RuleRecord*>(source + kPages * page - kRules / 2 * sizeof(RuleRecord));
  for (std::size_t at = 0; at < kRules; ++at)
    new (rules + at) RuleRecord(rule("*.log", RuleRecord::kPinned, {}));
  ASSERT_EQ(::mprotect(source + kPages * page, kPages * page, PROT_NONE), 0);
  const pid_t service = ::fork();
  if (service == 0) {
    ::signal(SIGSEGV, SIG_DFL);
    ::signal(SIGBUS, SIG_DFL);
    table.publish(std::span(rules, kRules));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(service, &status, 0), service);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "it was to die in the middle";
  RuleQuestion question;
  question.path = "/d/a.log";
  EXPECT_TRUE(table.decide(question, {}).pinned);
  EXPECT_FALSE(table.is_empty());
  ::munmap(source, 2 * kPages * page);
  ::munmap(shared, RuleTable::kBytes);
}

}  // namespace
}  // namespace cairn
