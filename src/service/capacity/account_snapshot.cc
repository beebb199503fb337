// SPDX-License-Identifier: Apache-2.0
// What a service leaves to its successor of the accounts, and how that takes it over.
#include <algorithm>
#include <set>

#include "base/check.h"
#include "service/capacity/account_registry.h"

namespace cairn::node {
namespace {

Status damaged(const std::string& what) {
  return {StatusCode::kInvalid, "the accounts that were kept are damaged: " + what};
}

// The numbers that are taken so far, each once.
class Numbers {
 public:
  // False when it is taken already, or not one of those from `first` on and below `end`.
  bool take(AccountId account, unsigned first, unsigned end) {
    return raw(account) >= first && raw(account) < end && taken_.insert(raw(account)).second;
  }
  bool has(unsigned number) const { return taken_.contains(number); }

 private:
  std::set<unsigned> taken_;
};

std::string text_of(AccountId account) { return "account " + std::to_string(raw(account)); }

}  // namespace

// Requires: the mutex.
AccountsSnapshot::Slabs AccountRegistry::reserved_by(AccountId account) const {
  AccountsSnapshot::Slabs slabs{};
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier)
    slabs[tier] = memory_.accounts().tiers[tier].reserved(account);
  return slabs;
}

AccountsSnapshot AccountRegistry::snapshot() const {
  const std::lock_guard lock(mutex_);
  AccountsSnapshot kept;
  for (const auto& [run, account] : accounts_) {
    kept.of_runs.push_back(
        {run, account, memory_.accounts().weight(account), reserved_by(account)});
  }
  for (const auto& [rule, account] : of_rules_)
    kept.of_rules.push_back({rule, account, reserved_by(account)});
  kept.free_for_rules.assign(free_for_rules_.begin(), free_for_rules_.end());
  return kept;
}

Status AccountRegistry::check_snapshot(const AccountsSnapshot& kept) const {
  Numbers numbers;
  std::set<std::uint32_t> runs;
  for (const AccountsSnapshot::OfRun& of_run : kept.of_runs) {
    if (of_run.run == 0 || !runs.insert(of_run.run).second)
      return damaged("run " + std::to_string(of_run.run) + " has two, or is none");
    if (!numbers.take(of_run.account, 1, kRuleAccountsFirst))
      return damaged(text_of(of_run.account) + " cannot be that of run " +
                     std::to_string(of_run.run));
    if (of_run.weight == 0) return damaged(text_of(of_run.account) + " has no weight");
  }
  std::set<RuleKey> rules;
  for (const AccountsSnapshot::OfRule& of_rule : kept.of_rules) {
    if (of_rule.rule.pattern.empty() || !rules.insert(of_rule.rule).second)
      return damaged("the rule for \"" + of_rule.rule.pattern + "\" has two, or is none");
    if (!numbers.take(of_rule.account, kRuleAccountsFirst, kAccountsMax))
      return damaged(text_of(of_rule.account) + " cannot be that of the rule for " +
                     of_rule.rule.pattern);
  }
  for (const auto& [account, pattern] : kept.free_for_rules) {
    if (!numbers.take(account, kRuleAccountsFirst, kAccountsMax))
      return damaged(text_of(account) + " cannot be free");
  }
  return check_reserved(kept);
}

// All that is reserved is below what may be, in each tier.
Status AccountRegistry::check_reserved(const AccountsSnapshot& kept) const {
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    std::uint64_t slabs = 0;
    for (const AccountsSnapshot::OfRun& of_run : kept.of_runs) slabs += of_run.reserved[tier];
    for (const AccountsSnapshot::OfRule& of_rule : kept.of_rules) slabs += of_rule.reserved[tier];
    const std::uint64_t most =
        tier < memory_.tier_count() ? memory_.pool(static_cast<TierId>(tier)).slab_count() : 0;
    if (slabs > most)
      return damaged(std::to_string(slabs) + " slabs of tier number " + std::to_string(tier) +
                     " are reserved, which has " + std::to_string(most));
  }
  return Status::ok();
}

// Which run and which rule has which number, and which are free. Requires: the mutex.
void AccountRegistry::take_numbers(const AccountsSnapshot& kept) {
  Numbers taken;
  for (const AccountsSnapshot::OfRun& of_run : kept.of_runs) {
    accounts_.emplace(of_run.run, of_run.account);
    CAIRN_CHECK(taken.take(of_run.account, 1, kRuleAccountsFirst));
  }
  for (const AccountsSnapshot::OfRule& of_rule : kept.of_rules) {
    of_rules_.emplace(of_rule.rule, of_rule.account);
    CAIRN_CHECK(taken.take(of_rule.account, kRuleAccountsFirst, kAccountsMax));
  }
  std::erase_if(free_, [&](AccountId account) { return taken.has(raw(account)); });
  free_for_rules_.assign(kept.free_for_rules.begin(), kept.free_for_rules.end());
  for (const auto& [account, pattern] : free_for_rules_)
    CAIRN_CHECK(taken.take(account, kRuleAccountsFirst, kAccountsMax));
  for (unsigned number = kRuleAccountsFirst; number < kAccountsMax; ++number) {
    if (!taken.has(number)) free_for_rules_.emplace_back(static_cast<AccountId>(number), "");
  }
}

// Whatever the shared memory says of an account that nobody has. Requires: the mutex.
void AccountRegistry::clear(AccountId account) {
  AccountTable& table = memory_.accounts();
  if (const std::uint32_t run = table.runs[raw(account)].load(); run != 0)
    clients_.set_account(run, AccountId::kNobody);
  table.runs[raw(account)].store(0, std::memory_order_relaxed);
  table.weights[raw(account)].store(0, std::memory_order_release);
  empty(account);
}

// Requires: the mutex.
void AccountRegistry::reopen(AccountId account, std::uint32_t weight,
                             const AccountsSnapshot::Slabs& reserved) {
  AccountTable& table = memory_.accounts();
  table.weights[raw(account)].store(weight, std::memory_order_release);
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    table.tiers[tier].reserve(account, reserved[tier]);
    if (reserved[tier] != 0) table.reserved_tiers.fetch_or(1U << tier, std::memory_order_release);
  }
}

Status AccountRegistry::restore(const AccountsSnapshot& kept) {
  const std::lock_guard lock(mutex_);
  CAIRN_CHECK(accounts_.empty() && of_rules_.empty());
  CAIRN_RETURN_IF_ERROR(check_snapshot(kept));
  take_numbers(kept);
  // First, because a run may stand in the place of an account that it has not any more.
  for (const AccountId account : free_) clear(account);
  for (const auto& [account, pattern] : free_for_rules_) clear(account);
  std::uint64_t of_rules = 0;
  for (const AccountsSnapshot::OfRule& of_rule : kept.of_rules) {
    reopen(of_rule.account, 0, of_rule.reserved);
    of_rules |= std::uint64_t{1} << raw(of_rule.account);
  }
  memory_.accounts().of_rules.store(of_rules, std::memory_order_release);
  for (const AccountsSnapshot::OfRun& of_run : kept.of_runs) {
    reopen(of_run.account, of_run.weight, of_run.reserved);
    clients_.set_account(of_run.run, of_run.account);
  }
  memory_.organizer_board().bell.ring();
  return Status::ok();
}

}  // namespace cairn::node
