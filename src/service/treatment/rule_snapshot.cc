// SPDX-License-Identifier: Apache-2.0
// What a service leaves to its successor of the rules, and how that takes it over.
#include <set>
#include <utility>

#include "base/check.h"
#include "service/treatment/rule_registry.h"

namespace cairn::node {

RulesSnapshot RuleRegistry::snapshot() const {
  const auto rules_of = [](const std::vector<Entry>& entries) {
    std::vector<FileRule> rules;
    for (const Entry& entry : entries) rules.push_back(entry.rule);
    return rules;
  };
  const std::lock_guard lock(mutex_);
  RulesSnapshot kept;
  kept.live = rules_of(live_);
  for (const auto& [run, entries] : runs_) kept.of_runs.emplace(run, rules_of(entries));
  kept.schema = rules_of(schema_);
  return kept;
}

// As they were compiled when they came. `has_positions`: they stand in a schema.
Result<std::vector<RuleRegistry::Entry>> RuleRegistry::recompile(const std::vector<FileRule>& rules,
                                                                 std::uint32_t run,
                                                                 bool has_positions) const {
  std::vector<Entry> entries;
  for (const FileRule& rule : rules) {
    auto entry = compile(rule, run);
    if (!entry) return entry.status();
    entries.push_back(std::move(entry.value()));
    if (has_positions) entries.back().key.position = static_cast<std::uint32_t>(entries.size());
    if (!rule.reserve || rule.reserve->bytes == 0 || rule.speaks_of_part()) continue;
    // A rule that was changed as the service died may find less room than it asked for. It holds
    // without it: the change has not been answered, so the command line sends it again.
    (void)open_account(&entries.back());
  }
  return entries;
}

// Requires: the mutex.
void RuleRegistry::close_accounts_of_none() const {
  std::set<RuleKey> known;
  for (const Entry* entry : in_order()) known.insert(entry->key);
  for (const AccountsSnapshot::OfRule& of_rule : accounts_.snapshot().of_rules) {
    if (!known.contains(of_rule.rule)) accounts_.close_for_rule(of_rule.rule);
  }
}

Status RuleRegistry::restore(const RulesSnapshot& kept) {
  std::size_t count = kept.live.size() + kept.schema.size();
  for (const auto& [run, rules] : kept.of_runs) count += rules.size();
  CAIRN_CHECK(size() == 0);
  CAIRN_RETURN_IF_ERROR(room_for(count));
  auto live = recompile(kept.live, 0, false);
  if (!live) return live.status();
  auto schema = recompile(kept.schema, 0, true);
  if (!schema) return schema.status();
  std::map<std::uint32_t, std::vector<Entry>> runs;
  for (const auto& [run, rules] : kept.of_runs) {
    auto entries = recompile(rules, run, true);
    if (!entries) return entries.status();
    runs.emplace(run, std::move(entries.value()));
  }
  const std::lock_guard lock(mutex_);
  live_ = std::move(live.value());
  schema_ = std::move(schema.value());
  runs_ = std::move(runs);
  publish();
  // First the rules, so that nobody opens a file under one whose account is closed.
  close_accounts_of_none();
  return Status::ok();
}

}  // namespace cairn::node
