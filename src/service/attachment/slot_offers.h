// SPDX-License-Identifier: Apache-2.0
// The slots that the service offers (memory/arena/slot_offer.h), as the service itself knows them.
//
// Thread safety: none; the client table's lock. Ownership: borrows the memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "memory/tiers/node_memory.h"
#include "service/keeping/kept_memory.h"

namespace cairn::node {

class SlotOffers {
 public:
  static constexpr unsigned kMost = ServiceBoard::kOffersMax;

  // A word may be seen taken in the midst of a round, which may have passed its greeting already.
  static constexpr std::uint64_t kRoundsOfStray = 2;

  // A successor goes on with the offers that it finds in `kept`.
  SlotOffers(const NodeMemory& memory, KeptMemory& kept)
      : memory_(memory),
        slots_(kept.take<std::uint16_t>(kMost)),
        numbers_(kept.take<std::uint32_t>(memory.slot_count())) {}

  // Slots that are offered, those included that were taken and whose greeting has not been read.
  unsigned count() const;
  // The taken ones among them whose greetings are to be read still. The greeting of a taken slot is
  // in a socket of the service, so a word that was seen taken before a whole round and has no
  // greeting in it was changed by a stray store: it counts no more, and its slot stays set aside.
  unsigned taken_count() const;
  // A round: everybody who had connected when it began was let in, and their greetings were read.
  // Returns whether a word is found out to be stray by it.
  bool end_round();
  std::uint64_t round() const { return round_; }

  // Requires: the slot is free, and fewer than kMost are offered.
  void add(std::uint16_t slot);
  // An open offer ends; nothing when all have been taken.
  std::optional<std::uint16_t> withdraw_one();
  // A greeting claims a slot: true when it is the greeting's. It counts as offered until end_of().
  bool grant(const SlotClaim& claim);
  // The slot is its process's now. Nothing if it is not offered.
  void end_of(std::uint32_t slot);
  bool is_offered(std::uint32_t slot) const;

 private:
  const NodeMemory& memory_;
  std::span<std::uint16_t> slots_;                         // by their place on the board; 0: none
  mutable std::array<std::uint64_t, kMost> seen_taken_{};  // the round when first seen; 0: not
  std::span<std::uint32_t> numbers_;                       // of the last offer of each slot
  std::uint64_t round_ = 1;                                // that is under way

  void end(unsigned place);
  bool is_unread(unsigned place) const;
};

}  // namespace cairn::node
