// SPDX-License-Identifier: Apache-2.0
#include "service/organizer/tier_shares.h"

#include <algorithm>

#include "base/check.h"

namespace cairn {
namespace {

// The slabs of an account beyond its reservation, as far as they can leave.
std::uint32_t excess(const AccountUse& account) {
  return account.used > account.reserved
             ? std::min(account.used - account.reserved, account.movable)
             : 0;
}

// In units of its weight.
double level(const AccountUse& account) {
  return static_cast<double>(excess(account)) / account.weight;
}

}  // namespace

TierUse use_of(const AccountTable& accounts, TierId tier) {
  const TierAccounts& of_tier = accounts.tiers[raw(tier)];
  TierUse use;
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    const auto account = static_cast<AccountId>(index);
    use[index] =
        AccountUse{of_tier.used(account), of_tier.reserved(account), accounts.weight(account)};
  }
  return use;
}

bool is_contended(const TierUse& use) {
  return std::count_if(use.begin(), use.end(),
                       [](const AccountUse& account) { return account.weight != 0; }) > 1;
}

std::array<std::uint32_t, kAccountsMax> slabs_to_give(const TierUse& use, std::uint32_t wanted) {
  std::array<std::uint32_t, kAccountsMax> gives{};
  std::array<unsigned, kAccountsMax> runs{};  // those that have anything to give, fullest first
  unsigned count = 0;
  const bool by_weight = is_contended(use);
  for (unsigned index = 0; index < kAccountsMax; ++index) {
    if (!by_weight) {
      gives[index] = excess(use[index]);
    } else if (use[index].weight == 0) {
      gives[index] = std::min(excess(use[index]), wanted);
      wanted -= gives[index];
    } else if (excess(use[index]) != 0) {
      runs[count++] = index;
    }
  }
  if (wanted == 0) return gives;
  std::sort(runs.begin(), runs.begin() + count,
            [&](unsigned left, unsigned right) { return level(use[left]) > level(use[right]); });
  // The fullest runs come down to one level, as many of them as reach below the next one's.
  double excesses = 0;
  double weights = 0;
  double down_to = 0;
  for (unsigned at = 0; at < count; ++at) {
    excesses += excess(use[runs[at]]);
    weights += use[runs[at]].weight;
    CAIRN_CHECK(weights > 0);
    down_to = std::max(0.0, (excesses - wanted) / weights);
    if (at + 1 < count && down_to >= level(use[runs[at + 1]])) {
      count = at + 1;
      break;
    }
  }
  for (unsigned at = 0; at < count; ++at) {
    const AccountUse& account = use[runs[at]];
    const auto keeps = static_cast<std::uint32_t>(down_to * account.weight + 1e-6);
    gives[runs[at]] = excess(account) - std::min(excess(account), keeps);
  }
  return gives;
}

std::uint32_t fair_share(const TierUse& use, AccountId account, std::uint32_t slabs) {
  std::uint64_t reserved = 0;
  std::uint64_t weights = 0;
  for (const AccountUse& other : use) {
    reserved += other.reserved;
    weights += other.weight;
  }
  const AccountUse& own = use[raw(account)];
  if (weights == 0) return own.reserved;
  const std::uint64_t common = slabs > reserved ? slabs - reserved : 0;
  return own.reserved + static_cast<std::uint32_t>(common * own.weight / weights);
}

}  // namespace cairn
