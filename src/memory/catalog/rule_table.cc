// SPDX-License-Identifier: Apache-2.0
#include "memory/catalog/rule_table.h"

#include <fnmatch.h>

#include <algorithm>
#include <cstring>

namespace cairn {
namespace {

bool pattern_matches(const RuleRecord& rule, const RuleQuestion& question) {
  const int flags = rule.has_numbers != 0 ? FNM_EXTMATCH : 0;
  if (fnmatch(rule.pattern, question.path, flags) == 0) return true;
  if (question.below != nullptr && fnmatch(rule.pattern, question.below, flags) == 0) return true;
  if (std::strchr(rule.pattern, '/') != nullptr) return false;
  const char* last = std::strrchr(question.path, '/');
  return last != nullptr && fnmatch(rule.pattern, last + 1, flags) == 0;
}

bool access_matches(RuleAccess access, const RuleQuestion& question) {
  switch (access) {
    case RuleAccess::kAny:
      return true;
    case RuleAccess::kRead:
      return question.reads && !question.writes;
    case RuleAccess::kWrite:
      return question.writes && !question.reads;
    case RuleAccess::kReadWrite:
      return question.reads && question.writes;
  }
  return false;
}

// Records are copied word by word, each with the ordering that a sequence needs: no word is read
// (written) before (after) the sequence that guards it. Boehm, "Can seqlocks get along with
// programming language memory models?", MSPC 2012.
constexpr std::size_t kRecordWords = sizeof(RuleRecord) / sizeof(std::uint64_t);
static_assert(sizeof(RuleRecord) % sizeof(std::uint64_t) == 0 && alignof(RuleRecord) == 8);

void copy_out(const RuleRecord& shared, RuleRecord* own) {
  const auto* from = reinterpret_cast<const std::uint64_t*>(&shared);
  std::uint64_t words[kRecordWords];
  for (std::size_t at = 0; at < kRecordWords; ++at)
    words[at] = __atomic_load_n(from + at, __ATOMIC_ACQUIRE);
  std::memcpy(static_cast<void*>(own), words, sizeof words);
  own->pattern[RuleRecord::kPatternBytes - 1] = '\0';  // whatever somebody has written there
}

void copy_in(const RuleRecord& own, RuleRecord* shared) {
  auto* to = reinterpret_cast<std::uint64_t*>(shared);
  std::uint64_t words[kRecordWords];
  std::memcpy(words, &own, sizeof words);
  for (std::size_t at = 0; at < kRecordWords; ++at)
    __atomic_store_n(to + at, words[at], __ATOMIC_RELEASE);
}

// Takes over what `rule` decides and nobody decided before.
void apply(const RuleRecord& rule, std::uint16_t* open, ObjectHandling* result, PartSet* set) {
  const ObjectHandling said = ObjectHandling::from_bits(rule.handling);
  const auto takes = [&](std::uint16_t property) {
    if ((rule.properties & *open & property) == 0) return false;
    *open = static_cast<std::uint16_t>(*open & ~property);
    return true;
  };
  if (takes(RuleRecord::kMode)) result->mode = said.mode;
  if (takes(RuleRecord::kTrigger)) result->trigger = said.trigger;
  if (takes(RuleRecord::kDurability)) result->durability = said.durability;
  if (takes(RuleRecord::kPolicy)) result->policy = said.policy;
  if (takes(RuleRecord::kHome)) result->home = said.home;
  if (takes(RuleRecord::kPinned)) result->pinned = said.pinned;
  if (takes(RuleRecord::kPriority)) result->priority = said.priority;
  if (takes(RuleRecord::kPrefetch)) result->prefetch = said.prefetch;
  if (takes(RuleRecord::kAccount) && rule.account_statement != 0) set->add(rule.account_statement);
}

// A rule for a part adds what nobody has decided for the whole file, and leaves it open.
void apply_to_part(const RuleRecord& rule, std::uint16_t open, PartSet* set) {
  const auto adds = [&](std::uint16_t property, std::uint8_t statement) {
    if (statement != 0 && (open & property) != 0) set->add(statement);
  };
  adds(RuleRecord::kHome, rule.part_home);
  adds(RuleRecord::kPinned, rule.part_pinned);
  adds(RuleRecord::kPriority, rule.part_priority);
  adds(RuleRecord::kMode, rule.part_never_buffered);
}

}  // namespace

bool rule_matches(const RuleRecord& rule, const RuleQuestion& question) {
  if (rule.run != 0 && rule.run != question.run) return false;
  if (question.size < rule.size_min || question.size > rule.size_max) return false;
  return access_matches(rule.access, question) && pattern_matches(rule, question);
}

// Every word is written with release and read with acquire: a reader that meets one of the set
// after the next also sees that the next has come into force, and starts again.
void RuleTable::publish(std::span<const RuleRecord> rules) {
  const std::size_t count = std::min<std::size_t>(rules.size(), kRulesMax);
  const std::uint32_t next = header_->published.load(std::memory_order_relaxed) + 1;
  RuleRecord* set = records_ + next % 2 * kRulesMax;
  for (std::size_t at = 0; at < count; ++at) copy_in(rules[at], set + at);
  header_->counts[next % 2].store(static_cast<std::uint32_t>(count), std::memory_order_release);
  header_->published.store(next, std::memory_order_release);
}

ObjectHandling RuleTable::decide(const RuleQuestion& question, ObjectHandling otherwise) const {
  std::uint32_t published = header_->published.load(std::memory_order_acquire);
  for (;;) {
    const RuleRecord* set = records_ + published % 2 * kRulesMax;
    ObjectHandling result = otherwise;
    std::uint16_t open = RuleRecord::kAllProperties;
    PartSet parts;
    const std::uint32_t count = std::min(
        header_->counts[published % 2].load(std::memory_order_acquire), std::uint32_t{kRulesMax});
    std::uint32_t now = published;
    for (std::uint32_t at = 0; at < count && open != 0 && now == published; ++at) {
      RuleRecord rule;
      copy_out(set[at], &rule);
      now = header_->published.load(std::memory_order_acquire);
      if (now != published || !rule_matches(rule, question)) continue;
      if (rule.speaks_of_part()) {
        apply_to_part(rule, open, &parts);
      } else {
        apply(rule, &open, &result, &parts);
      }
    }
    now = header_->published.load(std::memory_order_acquire);
    if (now == published) {
      result.parts = parts_.intern(parts);
      return result;
    }
    published = now;
  }
}

}  // namespace cairn
