// SPDX-License-Identifier: Apache-2.0
#include "service/capacity/account_registry.h"

#include <algorithm>

#include "base/check.h"
#include "base/size_text.h"
#include "service/organizer/tier_shares.h"

namespace cairn::node {
namespace {

// The part of a tier that cannot be reserved.
std::uint32_t margin_of(std::uint32_t slabs) {
  constexpr std::uint32_t kMarginMin = 16;
  return std::min(slabs, std::max(slabs / 8, kMarginMin));
}

std::string size_of(std::uint64_t slabs) { return format_size(slabs * kBlockBytes); }

static_assert(kAccountsMax <= 64, "AccountTable::of_rules has a bit for each");
static_assert(kRuleAccountsFirst < kAccountsMax);

std::uint64_t slabs_of_bytes(std::uint64_t bytes) {
  return bytes / kBlockBytes + (bytes % kBlockBytes != 0 ? 1 : 0);
}

}  // namespace

AccountRegistry::AccountRegistry(NodeMemory& memory, ClientTable& clients, const NodeConfig& config)
    : memory_(memory), clients_(clients), config_(config) {
  for (unsigned account = 1; account < kRuleAccountsFirst; ++account)
    free_.push_back(static_cast<AccountId>(account));
  for (unsigned account = kRuleAccountsFirst; account < kAccountsMax; ++account)
    free_for_rules_.emplace_back(static_cast<AccountId>(account), "");
}

Result<unsigned> AccountRegistry::tier_named(const std::string& name) const {
  std::string known;
  for (unsigned tier = 0; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
    if (memory_.pool(static_cast<TierId>(tier)).slab_count() == 0) continue;
    if (!memory_.takes_blocks(static_cast<TierId>(tier))) {
      if (name != tier_name(config_, tier)) continue;
      return Status(StatusCode::kExhausted, "tier " + name + " is out of service");
    }
    if (name.empty() || name == tier_name(config_, tier)) return tier;
    known += (known.empty() ? "" : ", ") + tier_name(config_, tier);
  }
  if (known.empty()) return Status(StatusCode::kNotFound, "the node has no tiers to reserve");
  return Status(StatusCode::kNotFound, "no tier is named \"" + name + "\"; the node has " + known);
}

// Requires: the mutex.
std::string AccountRegistry::who_reserves(unsigned tier) const {
  std::string text;
  for (const auto& [run, account] : accounts_) {
    const std::uint32_t slabs = memory_.accounts().tiers[tier].reserved(account);
    if (slabs == 0) continue;
    text += (text.empty() ? "" : ", ") + size_of(slabs) + " by run " + std::to_string(run);
  }
  for (const auto& [rule, account] : of_rules_) {
    const std::uint32_t slabs = memory_.accounts().tiers[tier].reserved(account);
    if (slabs == 0) continue;
    text += (text.empty() ? "" : ", ") + size_of(slabs) + " by the rule for " + rule.pattern;
  }
  return text.empty() ? "nothing is reserved yet" : "reserved are " + text;
}

// What the account may have of the tier, instead of what it has. Requires: the mutex.
std::uint32_t AccountRegistry::left_to_reserve(unsigned tier, AccountId account) const {
  const std::uint32_t all = memory_.pool(static_cast<TierId>(tier)).slab_count();
  const std::uint32_t most = all - margin_of(all);
  CAIRN_CHECK(most <= all);
  const TierAccounts& of_tier = memory_.accounts().tiers[tier];
  const std::uint32_t taken = of_tier.reserved_slabs() - of_tier.reserved(account);
  return most > taken ? most - taken : 0;
}

// Whether the account may have so many slabs of the tier instead of what it has. Requires: the
// mutex.
Status AccountRegistry::check(unsigned tier, std::uint64_t slabs, AccountId account) const {
  const std::uint32_t left = left_to_reserve(tier, account);
  if (slabs <= left) return Status::ok();
  const std::uint32_t all = memory_.pool(static_cast<TierId>(tier)).slab_count();
  const std::uint32_t most = all - margin_of(all);
  return Status(StatusCode::kExhausted,
                size_of(slabs) + " of tier " + tier_name(config_, tier) +
                    " cannot be reserved, only " + size_of(left) + " can: of its " + size_of(all) +
                    ", " + size_of(all - most) + " stay for everybody, and " + who_reserves(tier));
}

Status AccountRegistry::begin_run(std::uint32_t run, std::uint32_t weight,
                                  const std::vector<Reservation>& reservations) {
  const std::lock_guard lock(mutex_);
  std::map<unsigned, std::uint64_t> slabs_of;
  for (const Reservation& reservation : reservations) {
    const auto tier = tier_named(reservation.tier);
    if (!tier) return tier.status();
    const std::uint64_t slabs = slabs_of_bytes(reservation.bytes);
    if (!slabs_of.emplace(*tier, slabs).second) {
      return Status(StatusCode::kInvalid, "tier " + tier_name(config_, *tier) +
                                              " is reserved twice: name each tier once");
    }
    CAIRN_RETURN_IF_ERROR(check(*tier, slabs, AccountId::kNobody));
  }
  if (free_.empty()) {
    if (slabs_of.empty()) return Status::ok();
    return Status(StatusCode::kExhausted, "nothing can be reserved while " +
                                              std::to_string(kRuleAccountsFirst - 1) +
                                              " runs are under way");
  }
  const AccountId account = free_.front();
  CAIRN_CHECK(raw(account) != 0);
  CAIRN_CHECK(raw(account) < kRuleAccountsFirst);
  free_.pop_front();
  accounts_[run] = account;
  memory_.accounts().weights[raw(account)].store(std::max(weight, 1U), std::memory_order_release);
  open(account, slabs_of);
  clients_.set_account(run, account);
  return Status::ok();
}

// Requires: the mutex.
void AccountRegistry::open(AccountId account, const std::map<unsigned, std::uint64_t>& slabs_of) {
  AccountTable& table = memory_.accounts();
  for (TierAccounts& tier : table.tiers)
    tier.accounts[raw(account)].share.store(UINT32_MAX, std::memory_order_relaxed);
  for (const auto& [tier, slabs] : slabs_of) {
    CAIRN_CHECK(tier < memory_.tier_count());
    table.tiers[tier].reserve(account, static_cast<std::uint32_t>(slabs));
    table.reserved_tiers.fetch_or(1U << tier, std::memory_order_release);
  }
  if (!slabs_of.empty()) memory_.organizer_board().bell.ring();
}

void AccountRegistry::end_run(std::uint32_t run) {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(run);
  if (found == accounts_.end()) return;
  const AccountId account = found->second;
  clients_.set_account(run, AccountId::kNobody);
  memory_.accounts().weights[raw(account)].store(0, std::memory_order_release);
  empty(account);
  accounts_.erase(found);
  free_.push_back(account);
  CAIRN_CHECK(free_.size() < kRuleAccountsFirst);
  memory_.organizer_board().bell.ring();
}

// Nothing is reserved for the account any more, and what it has is nobody's. Requires: the mutex.
void AccountRegistry::empty(AccountId account) {
  CAIRN_CHECK(raw(account) < kAccountsMax);
  AccountTable& table = memory_.accounts();
  std::uint32_t reserved_tiers = 0;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    TierAccounts& of_tier = table.tiers[tier];
    of_tier.reserve(account, 0);
    if (of_tier.reserving.load() != 0) reserved_tiers |= 1U << tier;
    if (of_tier.used(account) != 0)
      memory_.pool(static_cast<TierId>(tier)).transfer(account, AccountId::kNobody);
  }
  table.reserved_tiers.store(reserved_tiers, std::memory_order_release);
}

// The number that files of the pattern name already, if it is free: each further one takes room in
// the table of parts for good. Requires: the mutex.
Result<AccountId> AccountRegistry::free_for_rule(const RuleKey& rule) {
  if (free_for_rules_.empty()) {
    return Status(StatusCode::kExhausted, "a node takes " +
                                              std::to_string(kAccountsMax - kRuleAccountsFirst) +
                                              " rules that reserve room, and has as many");
  }
  auto taken = std::find_if(free_for_rules_.begin(), free_for_rules_.end(),
                            [&](const auto& free) { return free.second == rule.pattern; });
  if (taken == free_for_rules_.end()) taken = free_for_rules_.begin();
  const AccountId account = taken->first;
  CAIRN_CHECK(raw(account) >= kRuleAccountsFirst);
  free_for_rules_.erase(taken);
  return account;
}

Result<AccountId> AccountRegistry::open_for_rule(const RuleKey& rule,
                                                 const Reservation& reservation) {
  const std::lock_guard lock(mutex_);
  const auto tier = tier_named(reservation.tier);
  if (!tier) return tier.status();
  const std::uint64_t slabs = slabs_of_bytes(reservation.bytes);
  const auto found = of_rules_.find(rule);
  const bool is_new = found == of_rules_.end();
  CAIRN_RETURN_IF_ERROR(check(*tier, slabs, is_new ? AccountId::kNobody : found->second));
  auto account = is_new ? free_for_rule(rule) : Result<AccountId>(found->second);
  if (!account) return account;
  AccountTable& table = memory_.accounts();
  for (unsigned other = 0; other < memory_.tier_count(); ++other) {
    if (other != *tier) table.tiers[other].reserve(*account, 0);
  }
  of_rules_[rule] = *account;
  open(*account, {{*tier, slabs}});
  table.of_rules.fetch_or(std::uint64_t{1} << raw(*account), std::memory_order_release);
  return account;
}

void AccountRegistry::close_for_rule(const RuleKey& rule) {
  const std::lock_guard lock(mutex_);
  const auto found = of_rules_.find(rule);
  if (found == of_rules_.end()) return;
  const AccountId account = found->second;
  memory_.accounts().of_rules.fetch_and(~(std::uint64_t{1} << raw(account)),
                                        std::memory_order_release);
  empty(account);
  of_rules_.erase(found);
  free_for_rules_.emplace_back(account, rule.pattern);
  CAIRN_CHECK(free_for_rules_.size() <= kAccountsMax - kRuleAccountsFirst);
  memory_.organizer_board().bell.ring();
}

std::uint64_t AccountRegistry::leave_tier(unsigned tier) {
  const std::lock_guard lock(mutex_);
  AccountTable& table = memory_.accounts();
  std::vector<unsigned> others;
  for (unsigned other = tier + 1; other < memory_.tiers_for(BufferingMode::kAsync); ++other)
    others.push_back(other);
  for (unsigned other = tier; other-- > 0;) others.push_back(other);
  std::uint64_t lost = 0;
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    const auto account = static_cast<AccountId>(index);
    const std::uint32_t slabs = table.tiers[tier].reserved(account);
    if (slabs == 0) continue;
    const auto taker = std::find_if(others.begin(), others.end(), [&](unsigned other) {
      const std::uint32_t wanted = slabs + table.tiers[other].reserved(account);
      return memory_.takes_blocks(static_cast<TierId>(other)) &&
             wanted <= left_to_reserve(other, account);
    });
    if (taker == others.end()) {
      lost += slabs;
    } else {
      open(account, {{*taker, slabs + table.tiers[*taker].reserved(account)}});
    }
    table.tiers[tier].reserve(account, 0);
  }
  table.reserved_tiers.fetch_and(~(1U << tier), std::memory_order_release);
  return lost;
}

// Requires: the mutex.
std::uint64_t AccountRegistry::missing_of(AccountId account) const {
  std::uint64_t missing = 0;
  for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
    const TierAccounts& of_tier = memory_.accounts().tiers[tier];
    if (of_tier.reserved(account) == 0) continue;
    const std::uint32_t back = of_tier.held_back();
    const std::uint32_t free = memory_.pool(static_cast<TierId>(tier)).free_slabs();
    if (back > free) missing += std::min(back - free, of_tier.unused(account));
  }
  return missing;
}

std::uint64_t AccountRegistry::missing_slabs(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t missing = 0;
  if (const auto found = accounts_.find(run); found != accounts_.end())
    missing = missing_of(found->second);
  for (const auto& [rule, account] : of_rules_) {
    if (rule.run == run) missing += missing_of(account);
  }
  return missing;
}

std::vector<RuleHolding> AccountRegistry::rule_holdings() const {
  const std::lock_guard lock(mutex_);
  std::vector<RuleHolding> holdings;
  for (const auto& [rule, account] : of_rules_) {
    for (unsigned tier = 0; tier < memory_.tier_count(); ++tier) {
      const TierAccounts& of_tier = memory_.accounts().tiers[tier];
      if (of_tier.reserved(account) == 0) continue;
      holdings.push_back(RuleHolding{rule, tier, std::uint64_t{of_tier.used(account)} * kBlockBytes,
                                     std::uint64_t{of_tier.reserved(account)} * kBlockBytes});
    }
  }
  return holdings;
}

std::vector<TierHolding> AccountRegistry::holdings_of(std::uint32_t run) const {
  const std::lock_guard lock(mutex_);
  const auto found = accounts_.find(run);
  std::vector<TierHolding> holdings;
  if (found == accounts_.end()) return holdings;
  for (unsigned tier = 0; tier < memory_.tiers_for(BufferingMode::kAsync); ++tier) {
    const TierUse use = use_of(memory_.accounts(), static_cast<TierId>(tier));
    const std::uint32_t slabs = memory_.pool(static_cast<TierId>(tier)).slab_count();
    const AccountUse& own = use[raw(found->second)];
    holdings.push_back(TierHolding{
        tier, std::uint64_t{own.used} * kBlockBytes, std::uint64_t{own.reserved} * kBlockBytes,
        std::uint64_t{fair_share(use, found->second, slabs)} * kBlockBytes});
  }
  return holdings;
}

}  // namespace cairn::node
