// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/capacity_accounts.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

// Calls visit(AccountId) for every account of a mask.
template <typename Visit>
void for_each_in(std::uint64_t mask, Visit&& visit) {
  for (; mask != 0; mask &= mask - 1)
    visit(static_cast<AccountId>(static_cast<unsigned>(__builtin_ctzll(mask))));
}

}  // namespace

std::uint32_t TierAccounts::used(AccountId account) const {
  // A death in mid-step may leave it too low until the sweep comes by.
  const auto count =
      static_cast<std::int32_t>(accounts[raw(account)].used.load(std::memory_order_relaxed));
  return static_cast<std::uint32_t>(std::max(count, 0));
}

void TierAccounts::reserve(AccountId account, std::uint32_t slabs) {
  CAIRN_DCHECK(raw(account) < kAccountsMax);
  const std::uint64_t bit = std::uint64_t{1} << raw(account);
  accounts[raw(account)].reserved.store(slabs, std::memory_order_relaxed);
  if (slabs != 0) {
    reserving.fetch_or(bit, std::memory_order_release);
  } else {
    reserving.fetch_and(~bit, std::memory_order_release);
  }
}

std::uint32_t TierAccounts::unused(AccountId account) const {
  const std::uint32_t kept = reserved(account);
  const std::uint32_t taken = used(account);
  return kept > taken ? kept - taken : 0;
}

std::uint32_t TierAccounts::reserved_slabs() const {
  std::uint32_t sum = 0;
  for_each_in(reserving.load(std::memory_order_acquire),
              [&](AccountId account) { sum += reserved(account); });
  return sum;
}

std::uint32_t TierAccounts::held_back() const {
  std::uint32_t sum = 0;
  for_each_in(reserving.load(std::memory_order_acquire),
              [&](AccountId account) { sum += unused(account); });
  return sum;
}

std::uint32_t TierAccounts::grant_with_limits(AccountId account, std::uint32_t wanted,
                                              std::uint32_t free) const {
  std::uint32_t left = common(free);
  const std::uint32_t floor = share_floor.load(std::memory_order_relaxed);
  const bool is_above_share =
      used(account) >= accounts[raw(account)].share.load(std::memory_order_relaxed);
  if (left < floor && is_above_share) left = 0;
  return std::min({wanted, free, left + unused(account)});
}

std::uint32_t TierAccounts::overdrawn(AccountId account, std::uint32_t taken,
                                      std::uint32_t free) const {
  if (__builtin_expect(reserving.load(std::memory_order_relaxed) == 0, 1)) return 0;
  const std::uint32_t back = held_back();
  if (free >= back) return 0;
  const std::uint32_t mine = used(account);
  const std::uint32_t kept = reserved(account);
  const std::uint32_t above = mine > kept ? mine - kept : 0;
  return std::min({taken, above, back - free});
}

}  // namespace cairn
