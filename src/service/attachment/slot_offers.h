// SPDX-License-Identifier: Apache-2.0
// The slots that the service offers (memory/arena/slot_offer.h), as the service itself knows them.
//
// Thread safety: none; the client table's lock. Ownership: borrows the memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

class SlotOffers {
 public:
  static constexpr unsigned kMost = ServiceBoard::kOffersMax;
  static constexpr std::int64_t kStrayNanos = 10'000'000'000;

  explicit SlotOffers(const NodeMemory& memory)
      : memory_(memory), numbers_(memory.slot_count(), 0) {}

  // Slots that are offered, those included that were taken and whose greeting has not been read.
  unsigned count() const;
  // The taken ones among them. When no greeting comes within kStrayNanos, a stray store has changed
  // the word: the slot counts no more, and stays set aside for a greeting that comes after all.
  unsigned taken_count() const;

  // Requires: the slot is free, and fewer than kMost are offered.
  void add(std::uint16_t slot);
  // An open offer ends; nothing when all have been taken.
  std::optional<std::uint16_t> withdraw_one();
  // A greeting claims a slot: true when it is the greeting's, and no longer offered.
  bool grant(const SlotClaim& claim);

 private:
  const NodeMemory& memory_;
  std::array<std::uint16_t, kMost> slots_{};  // by their place on the board; 0: none
  mutable std::array<std::int64_t, kMost> taken_since_ns_{};  // as first seen; 0: not
  std::vector<std::uint32_t> numbers_;                        // of the last offer of each slot

  void end(unsigned place);
};

}  // namespace cairn::node
