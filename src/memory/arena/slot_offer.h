// SPDX-License-Identifier: Apache-2.0
// A free slot that the service offers: a process takes it by itself, in shared memory, and goes on
// without waiting for the service.
//
//   state   word               moved by
//   none    0                  service: offers the slot -> open
//   open    number | 0         client, or the service for it -> taken;  service: withdraws -> none
//   taken   number | token     service, when it has returned all that the process held -> none
//
//   Drawn:  | number : 32 | token : 32 |
//
// Invariants
//  1. A client sends a greeting that names the slot, the number and its token before it takes the
//     slot. So the greeting of every taken slot is in a socket of the service. When a client dies
//     between two steps, the service finds the slot by the greeting and returns it once, like any
//     other slot. What the client sends later comes behind the greeting.
//  2. No number of a slot comes twice, so a client that has seen an earlier offer cannot take this
//     one.
//  3. Live processes have different tokens, so exactly one takes an offer. It and the service agree
//     which: a greeting that the service reads while the offer is open takes the slot, too.
//
// Thread safety: lock-free. The service believes no word: it knows what it has offered
// (service/attachment/slot_offers.h). Ownership: lives in the control segment.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"

namespace cairn {

// What a greeting names. Nothing: a greeting that asks for a slot and waits for it.
struct SlotClaim {
  std::uint32_t slot = 0;
  std::uint32_t number = 0;
  std::uint32_t token = 0;

  constexpr explicit operator bool() const { return slot != 0; }
};

class SlotOffer {
 public:
  // The service's part.
  void open(std::uint32_t number) {
    CAIRN_DCHECK(number != 0);
    word_.store(word_of(number, 0), std::memory_order_release);
  }
  // False when somebody has taken it.
  bool withdraw(std::uint32_t number) { return change(word_of(number, 0), 0); }
  void clear() { word_.store(0, std::memory_order_relaxed); }
  bool is_taken(std::uint32_t number) const {
    return word_.load(std::memory_order_acquire) != word_of(number, 0);
  }

  // Somebody took it when it was offered last.
  bool has_taker() const {
    return static_cast<std::uint32_t>(word_.load(std::memory_order_acquire)) != 0;
  }

  // The number of an open offer, else 0.
  std::uint32_t number_if_open() const {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    return static_cast<std::uint32_t>(word) == 0 ? static_cast<std::uint32_t>(word >> 32) : 0;
  }
  // By the client after its greeting, and by the service that has read the greeting: true when the
  // slot is the client's.
  bool take(const SlotClaim& claim) {
    CAIRN_DCHECK(claim.number != 0 && claim.token != 0);
    const std::uint64_t taken = word_of(claim.number, claim.token);
    return change(word_of(claim.number, 0), taken) ||
           word_.load(std::memory_order_acquire) == taken;
  }

 private:
  static constexpr std::uint64_t word_of(std::uint32_t number, std::uint32_t token) {
    return std::uint64_t{number} << 32 | token;
  }
  bool change(std::uint64_t from, std::uint64_t to) {
    return word_.compare_exchange_strong(from, to, std::memory_order_acq_rel);
  }

  std::atomic<std::uint64_t> word_;
};
static_assert(sizeof(SlotOffer) == sizeof(std::uint64_t), "the word is the whole offer");

}  // namespace cairn
