// SPDX-License-Identifier: Apache-2.0
#include "service/recovery/board_mending.h"

#include <algorithm>
#include <array>

#include "base/check.h"

namespace cairn::node {
namespace {

void rest_bells(const NodeMemory& memory) {
  memory.flusher_board().bell.retire();
  memory.organizer_board().bell.retire();
  memory.event_board().bell.retire();
  memory.warmer_board().bell.retire();
  memory.failure_board().bell.retire();
}

// Lowers the word to `most`. Returns whether it was higher.
bool lower_to(std::atomic<std::uint32_t>& word, std::uint32_t most) {
  std::uint32_t seen = word.load();
  while (seen > most) {
    if (word.compare_exchange_weak(seen, most)) return true;
  }
  return false;
}

std::uint32_t mend_plans(const NodeMemory& memory) {
  std::uint32_t mended = 0;
  for (PublishedPlan& plan : memory.placement_board().plans) {
    bool is_sound = true;
    for (unsigned element = 0; element < PublishedPlan::kElements; ++element)
      is_sound = is_sound && raw(plan.at(element)) < memory.tier_count();
    if (is_sound) continue;
    plan.store(std::array<TierId, PublishedPlan::kElements>{});
    ++mended;
  }
  return mended;
}

// RAM never leaves service, nor does a tier that there is not.
std::uint32_t mend_failures(const NodeMemory& memory) {
  const std::uint32_t file_tiers = ((1U << memory.tier_count()) - 1) & ~1U;
  std::atomic<std::uint32_t>& out = memory.failure_board().out_of_service;
  return (out.fetch_and(file_tiers) & ~file_tiers) != 0 ? 1 : 0;
}

// A death between a reservation and the bits that sum it up.
std::uint32_t mend_accounts(const NodeMemory& memory) {
  AccountTable& table = memory.accounts();
  std::uint32_t mended = 0;
  std::uint32_t reserved_tiers = 0;
  for (unsigned tier = 0; tier < kTiersMax; ++tier) {
    TierAccounts& accounts = table.tiers[tier];
    const std::uint32_t slabs =
        tier < memory.tier_count() ? memory.pool(static_cast<TierId>(tier)).slab_count() : 0;
    std::uint64_t reserving = 0;
    for (unsigned account = 0; account < kAccountsMax; ++account) {
      std::atomic<std::uint32_t>& reserved = accounts.accounts[account].reserved;
      if (lower_to(reserved, slabs)) ++mended;
      if (reserved.load() != 0) reserving |= std::uint64_t{1} << account;
    }
    if (accounts.reserving.exchange(reserving) != reserving) ++mended;
    if (reserving != 0) reserved_tiers |= 1U << tier;
  }
  if (table.reserved_tiers.exchange(reserved_tiers) != reserved_tiers) ++mended;
  return mended;
}

}  // namespace

std::uint32_t mend_boards(const NodeMemory& memory) {
  CAIRN_CHECK(memory.tier_count() != 0);
  rest_bells(memory);
  EventBoard& events = memory.event_board();
  events.wanted.store(EventLevel::kNone);
  events.opens_are_urgent.store(0);
  events.is_urgent.store(0);
  memory.events(ClientSlot::kOfService).demands.store(0);
  memory.organizer_board().rank_wanted.store(0);
  memory.organizer_board().reads_stay_above.store(0);
  for (auto& share : memory.device_board().read_around) share.store(0);
  std::uint32_t mended = mend_plans(memory) + mend_accounts(memory) + mend_failures(memory);
  const std::uint32_t slabs = memory.pool(TierId::kMemory).slab_count();
  WarmerBoard& warmer = memory.warmer_board();
  if (lower_to(warmer.used_slabs, slabs)) ++mended;
  if (lower_to(warmer.warm_slabs, slabs)) ++mended;
  return mended;
}

}  // namespace cairn::node
