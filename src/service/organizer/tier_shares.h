// SPDX-License-Identifier: Apache-2.0
// Computes how much of a tier each account has to give when room is made, and its share.
//
// A run alone may use everything: the oldest blocks leave, whoever's they are. While several runs
// are under way, first what belongs to none of them leaves; then each run gives of what it has
// beyond its reservation, so that those parts end in proportion to the runs' weights. A run that
// wants less than its share keeps what it has, and the others divide the rest (weighted max-min
// fairness). Below its reservation an account gives nothing.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>

#include "memory/pool/capacity_accounts.h"

namespace cairn {

struct AccountUse {
  std::uint32_t used = 0;
  std::uint32_t reserved = 0;
  std::uint32_t weight = 0;            // 0: no run under way
  std::uint32_t movable = UINT32_MAX;  // of what it uses: neither pinned nor in the way otherwise
};
using TierUse = std::array<AccountUse, kAccountsMax>;

TierUse use_of(const AccountTable& accounts, TierId tier);

// Whether several runs are under way.
bool is_contended(const TierUse& use);

// How many slabs each account may lose so that `wanted` become free. A run alone may lose anything
// beyond its reservation: age decides.
std::array<std::uint32_t, kAccountsMax> slabs_to_give(const TierUse& use, std::uint32_t wanted);

// The part of `slabs` that a run has for certain while all others want theirs: its reservation, and
// by weight of what is reserved for nobody.
std::uint32_t fair_share(const TierUse& use, AccountId account, std::uint32_t slabs);

}  // namespace cairn
