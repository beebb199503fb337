// SPDX-License-Identifier: Apache-2.0
// Questions of clients to the node service, and its answers, in shared memory: a fixed number of
// slots that any thread of any client takes, and one word per slot that both sides wait for.
//
//   stage      meaning                          moved by
//   free       nobody's                         client: ask() -> filling
//   filling    a client writes its question     client -> asked
//   asked      it waits to be taken             service: take() -> taken; client: withdraws -> free
//   taken      the service works on it          service: answer() -> answered;
//                                               its successor: return_taken() -> asked
//   answered   the result stands in the slot    client: await() -> free
//
// Invariants
//  1. The word of a slot has the stage and the owner that asks, and changes by compare-and-swap
//     alone. So each slot names its owner at every instant.
//  2. A client may die between any two steps. Then release_dead() frees each slot of it that the
//     service has not taken, and answer() frees one that it has.
//  3. A client that dies before it rings the bell, or a stray store into the words of the bell,
//     costs another client one sleep: a client that has slept in vain rings again.
//  4. No wait is unbounded in the kernel. After each sleep in vain the waiter asks whether the
//     service lives (OwnerTable::look_after_last()).
//  5. The service reads the words of a question once, and believes none of them (see
//     service/attachment/client_message.h).
//
// Thread safety: ask() and await() from any thread of any process; take() from one thread of the
// service; answer() from any of its threads. Ownership: a view of shared memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "base/futex.h"
#include "memory/arena/bell.h"
#include "memory/arena/owner.h"
#include "memory/arena/step_pause.h"

namespace cairn {

// What the words of a question mean is for frontends/protocol/question.h to say.
using QuestionWords = std::array<std::uint64_t, 2>;

enum class RequestStage : std::uint8_t { kFree = 0, kFilling, kAsked, kTaken, kAnswered, kCount };

// The word of a slot, drawn:  | turn : 5 | stage : 3 | owner : 24 |
// The turn counts the questions of a slot: a process that works for two after a fork does not take
// the next question's answer for that to its own.
class RequestWord {
 public:
  constexpr RequestWord() = default;
  constexpr explicit RequestWord(std::uint32_t bits) : bits_(bits) {}
  constexpr std::uint32_t bits() const { return bits_; }
  constexpr Owner owner() const { return Owner::from_bits(bits_); }
  constexpr RequestStage stage() const {
    return static_cast<RequestStage>(bits_ >> Owner::kBits & kStageMask);
  }
  constexpr RequestWord at(RequestStage stage) const {
    const std::uint32_t others = bits_ & ~(kStageMask << Owner::kBits);
    return RequestWord(others | static_cast<std::uint32_t>(stage) << Owner::kBits);
  }
  // The next question in this slot is `owner`'s.
  constexpr RequestWord taken_by(Owner owner) const {
    const std::uint32_t turn = (bits_ >> kTurnShift) + 1;
    return RequestWord(turn << kTurnShift | owner.bits()).at(RequestStage::kFilling);
  }
  constexpr RequestWord freed() const { return RequestWord(bits_ >> kTurnShift << kTurnShift); }
  friend constexpr bool operator==(RequestWord, RequestWord) = default;

 private:
  static constexpr std::uint32_t kStageMask = 7;
  static constexpr unsigned kTurnShift = Owner::kBits + 3;
  std::uint32_t bits_ = 0;
};
static_assert(static_cast<unsigned>(RequestStage::kCount) <= 8, "three bits");
static_assert(RequestWord().taken_by(Owner(5, 2)).owner() == Owner(5, 2));
static_assert(RequestWord(UINT32_MAX).taken_by(Owner(5, 2)).freed() == RequestWord(), "turns wrap");

class RequestRing {
 public:
  // Slots that tests may make fewer.
  static constexpr std::uint32_t kSlotsMax = 256;

  struct alignas(64) Slot {
    std::atomic<std::uint32_t> word;  // RequestWord; futex
    std::atomic<std::int32_t> result;
    std::array<std::atomic<std::uint64_t>, std::tuple_size_v<QuestionWords>> question;
  };
  struct Table {
    alignas(64) Bell bell;                 // of the service
    std::atomic<std::uint32_t> is_closed;  // the service answers nothing more
    alignas(64) std::array<std::atomic<std::uint64_t>, kSlotsMax / 64> asked;  // a bit per slot
    std::array<Slot, kSlotsMax> slots;
  };
  static constexpr std::uint64_t kBytes = sizeof(Table);

  // A question under way, as its slot's word names it.
  struct Place {
    std::uint32_t slot = 0;
    RequestWord word;
  };
  struct Taken {
    Place place;
    QuestionWords question{};
    Owner asker() const { return place.word.owner(); }
  };

  RequestRing() = default;
  // The present owner of `service_slot` gives the answers; a successor has the slot, too.
  RequestRing(Table* table, std::uint32_t slots, std::uint16_t service_slot)
      : table_(table), slots_(slots), service_slot_(service_slot) {
    CAIRN_CHECK(slots != 0 && slots <= kSlotsMax);
  }

  // Puts a question. None when no slot is free or the service answers nothing more: there is
  // another way to ask.
  template <typename Pause = NoPause>
  std::optional<Place> ask(Owner self, const QuestionWords& question,
                           const Pause& pause = Pause()) const;

  enum class Waited : std::uint8_t {
    kAnswered,  // the slot is free again
    kStill,     // not within the time
    kNever,     // the service is dead and has no successor, or the slot is not ours any more
  };
  // Waits for the answer for about `sleeps` times kSleepMs.
  template <typename Pause = NoPause>
  Waited await(const Place& place, const OwnerTable& owners, unsigned sleeps, std::int32_t* result,
               const Pause& pause = Pause()) const;
  // Gives the slot up without an answer. Requires: no service works on it any more, or the place
  // has not been taken.
  void withdraw(const Place& place) const;

  // The service. Calls visit(Taken) for each question that waits; those of the dead are dropped.
  template <typename Visit, typename Pause = NoPause>
  void take(const OwnerTable& owners, Visit&& visit, const Pause& pause = Pause()) const;
  // Each question that was taken is answered once. Harmless when its asker is gone.
  template <typename Pause = NoPause>
  void answer(const Place& taken, std::int32_t result, const OwnerTable& owners,
              const Pause& pause = Pause()) const;
  // Sleeps until the bell rings, unless a question waits. `heard` is heard() of before the last
  // take().
  void sleep(std::uint32_t heard, int timeout_ms) const;
  std::uint32_t heard() const { return table_->bell.listen(); }
  // Ends a sleep.
  void ring() const { table_->bell.ring_anyway(); }
  // Clients ask nothing more from here on; one more take() finds the last question. Ends a sleep.
  void close() const;
  // A successor, before its first take(): what the dead service had taken waits again, and clients
  // may ask. Returns how many there were. Words that no stage explains are freed.
  std::uint32_t return_taken() const;
  // Frees what dead owners have asked and nobody has taken. Returns how many.
  std::uint32_t release_dead(const OwnerTable& owners) const;

  std::uint32_t slots() const { return slots_; }
  RequestWord word(std::uint32_t slot) const {
    return RequestWord(table_->slots[slot].word.load(std::memory_order_acquire));
  }
  std::uint32_t used_slots() const;

  static constexpr int kSleepMs = 50;

 private:
  bool change(std::uint32_t slot, RequestWord from, RequestWord to) const {
    std::uint32_t expected = from.bits();
    return table_->slots[slot].word.compare_exchange_strong(expected, to.bits(),
                                                            std::memory_order_seq_cst);
  }
  std::optional<Place> reserve(Owner self) const;
  void announce(std::uint32_t slot) const;
  Waited look(const Place& place, std::int32_t* result) const;
  std::optional<Taken> take_slot(std::uint32_t slot, const OwnerTable& owners) const;

  Table* table_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint16_t service_slot_ = 0;
};
static_assert(sizeof(RequestRing::Slot) == 64, "slots share no cache line");
static_assert(offsetof(RequestRing::Table, slots) == 128, "nor do the words of the bell");

template <typename Pause>
std::optional<RequestRing::Place> RequestRing::ask(Owner self, const QuestionWords& question,
                                                   const Pause& pause) const {
  CAIRN_DCHECK(static_cast<bool>(self));
  std::optional<Place> place = reserve(self);
  if (!place) return std::nullopt;
  pause.at_step();
  Slot& slot = table_->slots[place->slot];
  for (std::size_t at = 0; at < question.size(); ++at) {
    slot.question[at].store(question[at], std::memory_order_relaxed);
    pause.at_step();
  }
  const RequestWord asked = place->word.at(RequestStage::kAsked);
  if (!change(place->slot, place->word, asked)) return std::nullopt;
  place->word = asked;
  pause.at_step();
  // The service closes the ring and then takes once more: it sees the question, or we see this.
  if (table_->is_closed.load(std::memory_order_seq_cst) != 0 &&
      change(place->slot, asked, asked.freed()))
    return std::nullopt;
  pause.at_step();
  announce(place->slot);
  pause.at_step();
  // Only the service says that it is awake, so the next client rings for one that died here.
  table_->bell.ring();
  pause.at_step();
  return place;
}

template <typename Pause>
RequestRing::Waited RequestRing::await(const Place& place, const OwnerTable& owners,
                                       unsigned sleeps, std::int32_t* result,
                                       const Pause& pause) const {
  for (unsigned slept = 0;; ++slept) {
    const Waited waited = look(place, result);
    if (waited != Waited::kStill) return waited;
    pause.at_step();
    if (!owners.has_owner(service_slot_)) {
      withdraw(place);
      return Waited::kNever;
    }
    if (slept == sleeps) return Waited::kStill;
    const RequestWord seen = word(place.slot);
    if (seen.stage() == RequestStage::kAnswered) continue;
    if (futex_wait(table_->slots[place.slot].word, seen.bits(), kSleepMs)) continue;
    pause.at_step();
    if (seen.stage() == RequestStage::kAsked) {
      announce(place.slot);
      ring();
    }
    owners.look_after_last(service_slot_);
  }
}

template <typename Visit, typename Pause>
void RequestRing::take(const OwnerTable& owners, Visit&& visit, const Pause& pause) const {
  for (std::uint32_t group = 0; group * 64 < slots_; ++group) {
    std::atomic<std::uint64_t>& asked = table_->asked[group];
    if (asked.load(std::memory_order_seq_cst) == 0) continue;
    std::uint64_t bits = asked.exchange(0, std::memory_order_seq_cst);
    pause.at_step();
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t slot = group * 64 + static_cast<std::uint32_t>(__builtin_ctzll(bits));
      if (slot >= slots_) break;
      const std::optional<Taken> taken = take_slot(slot, owners);
      pause.at_step();
      if (taken) visit(*taken);
    }
  }
}

template <typename Pause>
void RequestRing::answer(const Place& taken, std::int32_t result, const OwnerTable& owners,
                         const Pause& pause) const {
  CAIRN_CHECK(taken.slot < slots_);
  CAIRN_DCHECK(taken.word.stage() == RequestStage::kTaken);
  if (word(taken.slot) != taken.word) return;
  pause.at_step();
  table_->slots[taken.slot].result.store(result, std::memory_order_relaxed);
  pause.at_step();
  const RequestWord answered = taken.word.at(RequestStage::kAnswered);
  if (!change(taken.slot, taken.word, answered)) return;
  pause.at_step();
  // A death advances the generation before the sweep looks at the slot: the sweep sees the answer,
  // or we see the death.
  if (!owners.is_alive(taken.word.owner())) {
    (void)change(taken.slot, answered, answered.freed());
    return;
  }
  pause.at_step();
  futex_wake(table_->slots[taken.slot].word);
}

}  // namespace cairn
