// SPDX-License-Identifier: Apache-2.0
// Whose slabs a tier's are: one account for each run of the node, and for each rule that reserves
// room for its files, with what it uses, what is
// reserved for it, and its share against other runs.
//
// An account is charged for a slab by the thread that takes it out of the pool (its stock
// included) until the slab is free again; the slab's word says which account that is. So a death
// leaves at most a count that is off, which the sweep corrects, and never a wrong owner.
//
//   in a tier         who may take a free slab
//   held back         accounts that use less than is reserved for them: always
//   common            everybody; while runs compete and little is left, only who is below its share
//
// Thread safety: atomics by any thread. Reservations, weights and shares are written by the service
// alone. Ownership: the table lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ids.h"

namespace cairn {

inline constexpr unsigned kAccountsMax = 64;
// From here on they are of rules. These are few, because each number makes statements and sets of
// its own in the table of parts (memory/catalog/part_table.h), which forgets none.
inline constexpr unsigned kRuleAccountsFirst = 48;

// The accounts of one tier, in slabs.
struct TierAccounts {
  struct Account {
    std::atomic<std::uint32_t> used;  // exact up to changes in flight
    std::atomic<std::uint32_t> reserved;
    std::atomic<std::uint32_t> share;  // while runs compete; see share_floor
  };
  // One bit for each account that has something reserved.
  std::atomic<std::uint64_t> reserving;
  // Runs compete for the tier: with less common room than this, accounts above their share get
  // none. 0: no competition.
  std::atomic<std::uint32_t> share_floor;
  // On other lines than what every lease reads.
  alignas(64) Account accounts[kAccountsMax];

  std::uint32_t used(AccountId account) const;
  std::uint32_t reserved(AccountId account) const {
    return accounts[raw(account)].reserved.load(std::memory_order_relaxed);
  }
  void charge(AccountId account, std::uint32_t slabs) {
    accounts[raw(account)].used.fetch_add(slabs, std::memory_order_relaxed);
  }
  void discharge(AccountId account, std::uint32_t slabs) {
    accounts[raw(account)].used.fetch_sub(slabs, std::memory_order_relaxed);
  }
  void reserve(AccountId account, std::uint32_t slabs);

  // Slabs that are reserved for an account and that it does not use.
  std::uint32_t unused(AccountId account) const;
  // Slabs that are reserved for all accounts together.
  std::uint32_t reserved_slabs() const;
  // What of the free slabs is for accounts that have not used what is reserved for them.
  std::uint32_t held_back() const;
  // What of `free` slabs is for everybody.
  std::uint32_t common(std::uint32_t free) const {
    if (reserving.load(std::memory_order_relaxed) == 0) return free;
    const std::uint32_t back = held_back();
    return free > back ? free - back : 0;
  }
  // How many of `wanted` slabs the account may take while `free` are free.
  std::uint32_t grant(AccountId account, std::uint32_t wanted, std::uint32_t free) const {
    const bool is_open = (reserving.load(std::memory_order_relaxed) |
                          share_floor.load(std::memory_order_relaxed)) == 0;
    if (__builtin_expect(is_open, 1)) return wanted < free ? wanted : free;
    return grant_with_limits(account, wanted, free);
  }
  // How many of `taken` slabs the account has to give back, now that `free` are left: others have
  // taken at the same instant, and what is held back would not suffice.
  std::uint32_t overdrawn(AccountId account, std::uint32_t taken, std::uint32_t free) const;

 private:
  std::uint32_t grant_with_limits(AccountId account, std::uint32_t wanted,
                                  std::uint32_t free) const;
};

struct AccountTable {
  // Bits of the tiers in which anything is reserved.
  std::atomic<std::uint32_t> reserved_tiers;
  // Bits of the accounts that rules have. Files that were opened under a rule name its account
  // until they are opened again, also when the rule is gone.
  std::atomic<std::uint64_t> of_rules;
  // 0: no run's. Always 0 for the accounts of rules and for account 0, whose slabs belong to no run
  // under way.
  std::atomic<std::uint32_t> weights[kAccountsMax];
  // The run of each account; 0: none. A process that takes a slot by itself finds its account here.
  std::atomic<std::uint32_t> runs[kAccountsMax];
  TierAccounts tiers[kTiersMax];

  bool is_of_rule(AccountId account) const {
    return (of_rules.load(std::memory_order_relaxed) >> raw(account) & 1) != 0;
  }
  AccountId of_run(std::uint32_t run) const {
    unsigned account = run == 0 ? 0 : kRuleAccountsFirst - 1;
    while (account > 0 && runs[account].load(std::memory_order_relaxed) != run) --account;
    return static_cast<AccountId>(account);
  }
  std::uint32_t weight(AccountId account) const {
    return weights[raw(account)].load(std::memory_order_relaxed);
  }
};

}  // namespace cairn
