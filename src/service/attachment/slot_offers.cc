// SPDX-License-Identifier: Apache-2.0
#include "service/attachment/slot_offers.h"

#include <algorithm>

#include "base/check.h"

namespace cairn::node {

unsigned SlotOffers::count() const {
  return static_cast<unsigned>(
      std::count_if(slots_.begin(), slots_.end(), [](std::uint16_t slot) { return slot != 0; }));
}

unsigned SlotOffers::taken_count() const {
  unsigned count = 0;
  for (unsigned place = 0; place < kMost; ++place) {
    if (is_unread(place)) ++count;
  }
  return count;
}

bool SlotOffers::is_unread(unsigned place) const {
  const std::uint16_t slot = slots_[place];
  const bool is_taken = slot != 0 && memory_.slot(slot).offer.is_taken(numbers_[slot]);
  if (!is_taken) {
    seen_taken_[place] = 0;
  } else if (seen_taken_[place] == 0) {
    seen_taken_[place] = round_;
  }
  return is_taken && round_ < seen_taken_[place] + kRoundsOfStray;
}

bool SlotOffers::end_round() {
  const unsigned before = taken_count();
  ++round_;
  CAIRN_CHECK(round_ != 0);
  return taken_count() < before;
}

void SlotOffers::add(std::uint16_t slot) {
  CAIRN_CHECK(slot > ClientSlot::kOfService && slot < numbers_.size());
  const auto free = std::find(slots_.begin(), slots_.end(), 0);
  CAIRN_CHECK(free != slots_.end());
  if (++numbers_[slot] == 0) ++numbers_[slot];
  memory_.slot(slot).offer.open(numbers_[slot]);
  const auto place = static_cast<unsigned>(free - slots_.begin());
  slots_[place] = slot;
  memory_.service_board().offers[place].store(slot, std::memory_order_release);
}

std::optional<std::uint16_t> SlotOffers::withdraw_one() {
  for (unsigned place = 0; place < kMost; ++place) {
    const std::uint16_t slot = slots_[place];
    if (slot == 0 || !memory_.slot(slot).offer.withdraw(numbers_[slot])) continue;
    end(place);
    return slot;
  }
  return std::nullopt;
}

bool SlotOffers::grant(const SlotClaim& claim) {
  if (!is_offered(claim.slot) || numbers_[claim.slot] != claim.number) return false;
  return memory_.slot(static_cast<std::uint16_t>(claim.slot)).offer.take(claim);
}

bool SlotOffers::is_offered(std::uint32_t slot) const {
  return slot != 0 && std::find(slots_.begin(), slots_.end(), slot) != slots_.end();
}

void SlotOffers::end_of(std::uint32_t slot) {
  const auto found = std::find(slots_.begin(), slots_.end(), slot);
  if (slot != 0 && found != slots_.end()) end(static_cast<unsigned>(found - slots_.begin()));
}

void SlotOffers::end(unsigned place) {
  slots_[place] = 0;
  seen_taken_[place] = 0;
  memory_.service_board().offers[place].store(0, std::memory_order_release);
}

}  // namespace cairn::node
