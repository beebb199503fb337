// SPDX-License-Identifier: Apache-2.0
// The accounts of the tiers: opens an account for each run, with its weight and what is
// reserved for it, and closes it when the run ends; and one for each rule that reserves room for
// its files. What a run has left behind, or was in the room of a rule, then belongs to nobody.
//
// Reservations are of one tier each. At least an eighth of every tier stays for everybody.
//
// Thread safety: all functions from any thread. Ownership: borrows everything.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/node_config.h"
#include "base/reservation.h"
#include "base/status.h"
#include "service/attachment/client_table.h"

namespace cairn::node {

// The bytes of a run in one tier.
struct TierHolding {
  unsigned tier = 0;
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
  std::uint64_t share = 0;  // for certain, while all runs under way want theirs
};

// Which rule room is reserved by.
struct RuleKey {
  std::uint32_t run = 0;       // in whose schema it stands; 0: the node's, or it was set
  std::uint32_t position = 0;  // in its schema, from 1; 0: `cairn set` said it
  std::string pattern;

  friend auto operator<=>(const RuleKey&, const RuleKey&) = default;
};

// The bytes of the files of a rule in the tier that it reserves.
struct RuleHolding {
  RuleKey rule;
  unsigned tier = 0;
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
};

// All accounts of a node, as a service leaves them to its successor. Words of slabs in shared
// memory name the accounts by their numbers.
struct AccountsSnapshot {
  using Slabs = std::array<std::uint32_t, kTiersMax>;
  struct OfRun {
    std::uint32_t run = 0;
    AccountId account{};
    std::uint32_t weight = 0;
    Slabs reserved{};
  };
  struct OfRule {
    RuleKey rule;
    AccountId account{};
    Slabs reserved{};
  };
  std::vector<OfRun> of_runs;
  std::vector<OfRule> of_rules;
  // The numbers of rules that are free, each with the pattern that had it last.
  std::vector<std::pair<AccountId, std::string>> free_for_rules;
};

class AccountRegistry {
 public:
  AccountRegistry(NodeMemory& memory, ClientTable& clients, const NodeConfig& config);

  // Opens the run's account. With more runs than there are accounts, those that reserve nothing
  // share account 0.
  // Errors: kNotFound for a tier that there is not, kInvalid for one named twice, kExhausted when a
  // tier has not as much left to reserve: the message names the reservations.
  Status begin_run(std::uint32_t run, std::uint32_t weight,
                   const std::vector<Reservation>& reservations);
  // Closes it, if there is one.
  void end_run(std::uint32_t run);

  // Opens an account for the files of a rule, or gives the one that it has another reservation.
  // Errors: as of begin_run(), and then all is as before.
  Result<AccountId> open_for_rule(const RuleKey& rule, const Reservation& reservation);
  // Closes it, if there is one.
  void close_for_rule(const RuleKey& rule);

  // The tier has left service: what is reserved of it is reserved of the next slower tier that has
  // as much left, else of the next faster one. Returns the slabs for which none has.
  std::uint64_t leave_tier(unsigned tier);

  // Slabs of the reservations of the run and of its rules that others still have; of run 0, of
  // those of the node's rules.
  std::uint64_t missing_slabs(std::uint32_t run) const;
  std::vector<RuleHolding> rule_holdings() const;
  std::vector<TierHolding> holdings_of(std::uint32_t run) const;

  AccountsSnapshot snapshot() const;
  // Takes over the accounts of a dead service, each with its number and what is reserved for it. An
  // account that the snapshot does not name is closed: the dead service was about to open it, or
  // had not closed it yet. Requires: no account is open.
  // Errors: kInvalid, naming what is wrong; then nothing has changed.
  Status restore(const AccountsSnapshot& kept);

 private:
  Status check_snapshot(const AccountsSnapshot& kept) const;
  Status check_reserved(const AccountsSnapshot& kept) const;
  void take_numbers(const AccountsSnapshot& kept);
  void clear(AccountId account);
  void reopen(AccountId account, std::uint32_t weight, const AccountsSnapshot::Slabs& reserved);
  AccountsSnapshot::Slabs reserved_by(AccountId account) const;
  Result<unsigned> tier_named(const std::string& name) const;
  std::uint32_t left_to_reserve(unsigned tier, AccountId account) const;
  Status check(unsigned tier, std::uint64_t slabs, AccountId account) const;
  std::string who_reserves(unsigned tier) const;
  Result<AccountId> free_for_rule(const RuleKey& rule);
  void open(AccountId account, const std::map<unsigned, std::uint64_t>& slabs_of);
  void empty(AccountId account);
  std::uint64_t missing_of(AccountId account) const;

  NodeMemory& memory_;
  ClientTable& clients_;
  const NodeConfig& config_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, AccountId> accounts_;  // by run
  std::deque<AccountId> free_;                   // oldest first, so that a number rests a while
  std::map<RuleKey, AccountId> of_rules_;
  // As above, each with the pattern that had it last.
  std::deque<std::pair<AccountId, std::string>> free_for_rules_;
};

}  // namespace cairn::node
