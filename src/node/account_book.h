// SPDX-License-Identifier: Apache-2.0
// Who has how much of the tiers: opens an account for each run, with its weight and what is
// reserved for it, and closes it when the run ends. What the run has left behind then belongs to
// nobody.
//
// Reservations are of one tier each. At least an eighth of every tier stays for everybody.
//
// Thread safety: all functions from any thread. Ownership: borrows everything.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/node_config.h"
#include "base/status.h"
#include "node/client_table.h"

namespace cairn::node {

struct Reservation {
  std::string tier;  // its name; empty: the fastest
  std::uint64_t bytes = 0;
};

// What a run has in one tier, in bytes.
struct TierHolding {
  unsigned tier = 0;
  std::uint64_t used = 0;
  std::uint64_t reserved = 0;
  std::uint64_t share = 0;  // for certain, while all runs under way want theirs
};

class AccountBook {
 public:
  AccountBook(NodeMemory& memory, ClientTable& clients, const NodeConfig& config);

  // Opens the run's account. With more runs than there are accounts, those that reserve nothing
  // share account 0.
  // Errors: kNotFound for a tier that there is not, kInvalid for one named twice, kExhausted when a
  // tier has not as much left to reserve: the message says what is reserved by whom.
  Status begin_run(std::uint32_t run, std::uint32_t weight,
                   const std::vector<Reservation>& reservations);
  // Closes it, if there is one.
  void end_run(std::uint32_t run);

  // Slabs of the run's reservations that others still have.
  std::uint64_t missing_slabs(std::uint32_t run) const;
  std::vector<TierHolding> holdings_of(std::uint32_t run) const;

 private:
  Result<unsigned> tier_named(const std::string& name) const;
  Status check(unsigned tier, std::uint64_t slabs) const;
  std::string who_reserves(unsigned tier) const;

  NodeMemory& memory_;
  ClientTable& clients_;
  const NodeConfig& config_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, AccountId> accounts_;  // by run
  std::deque<AccountId> free_;                   // oldest first, so that a number rests a while
};

}  // namespace cairn::node
