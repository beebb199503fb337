// SPDX-License-Identifier: Apache-2.0
#include "memory/arena/request_ring.h"

#include <algorithm>

namespace cairn {
namespace {

constexpr std::uint64_t bit_of(std::uint32_t slot) { return std::uint64_t{1} << slot % 64; }

}  // namespace

// Processes begin their search at different slots.
std::optional<RequestRing::Place> RequestRing::reserve(Owner self) const {
  constexpr std::uint32_t kStride = 37;
  const std::uint32_t first = self.slot() * kStride % slots_;
  for (std::uint32_t step = 0; step < slots_; ++step) {
    const std::uint32_t slot = (first + step) % slots_;
    const RequestWord seen = word(slot);
    if (seen.stage() != RequestStage::kFree) continue;
    const RequestWord mine = seen.taken_by(self);
    if (change(slot, seen, mine)) return Place{slot, mine};
  }
  return std::nullopt;
}

void RequestRing::announce(std::uint32_t slot) const {
  table_->asked[slot / 64].fetch_or(bit_of(slot), std::memory_order_seq_cst);
}

RequestRing::Waited RequestRing::look(const Place& place, std::int32_t* result) const {
  const RequestWord seen = word(place.slot);
  if (seen == place.word || seen == place.word.at(RequestStage::kTaken)) return Waited::kStill;
  if (seen != place.word.at(RequestStage::kAnswered)) return Waited::kNever;
  const std::int32_t answered = table_->slots[place.slot].result.load(std::memory_order_relaxed);
  // Two processes share the owner since a fork: the other one may have been here first.
  if (!change(place.slot, seen, seen.freed())) return Waited::kNever;
  *result = answered;
  return Waited::kAnswered;
}

void RequestRing::withdraw(const Place& place) const {
  for (const RequestStage stage :
       {RequestStage::kAsked, RequestStage::kTaken, RequestStage::kAnswered})
    (void)change(place.slot, place.word.at(stage), place.word.freed());
}

std::optional<RequestRing::Taken> RequestRing::take_slot(std::uint32_t slot,
                                                         const OwnerTable& owners) const {
  const RequestWord seen = word(slot);
  if (seen.stage() != RequestStage::kAsked) return std::nullopt;
  if (!owners.is_alive(seen.owner())) {
    (void)change(slot, seen, seen.freed());
    return std::nullopt;
  }
  Taken taken;
  taken.place = Place{slot, seen.at(RequestStage::kTaken)};
  if (!change(slot, seen, taken.place.word)) return std::nullopt;
  for (std::size_t at = 0; at < taken.question.size(); ++at)
    taken.question[at] = table_->slots[slot].question[at].load(std::memory_order_relaxed);
  return taken;
}

// A client that saw the ring open had asked before this store, and may not have announced it yet.
// So the service looks at every slot once more.
void RequestRing::close() const {
  table_->is_closed.store(1, std::memory_order_seq_cst);
  for (std::atomic<std::uint64_t>& asked : table_->asked)
    asked.store(UINT64_MAX, std::memory_order_seq_cst);
  ring();
}

// All slots are to be looked at once more: the dead service may have cleared their bits.
std::uint32_t RequestRing::return_taken() const {
  std::uint32_t returned = 0;
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    const RequestWord seen = word(slot);
    if (seen.stage() == RequestStage::kTaken) {
      if (change(slot, seen, seen.at(RequestStage::kAsked))) ++returned;
    } else if (seen.stage() >= RequestStage::kCount) {
      (void)change(slot, seen, seen.freed());
    }
  }
  for (std::atomic<std::uint64_t>& asked : table_->asked)
    asked.store(UINT64_MAX, std::memory_order_seq_cst);
  table_->bell.retire();
  table_->is_closed.store(0, std::memory_order_seq_cst);
  return returned;
}

void RequestRing::sleep(std::uint32_t heard, int timeout_ms) const {
  table_->bell.sleep(heard, timeout_ms, [this] {
    return std::any_of(table_->asked.begin(), table_->asked.end(), [](const auto& asked) {
      return asked.load(std::memory_order_seq_cst) != 0;
    });
  });
}

std::uint32_t RequestRing::release_dead(const OwnerTable& owners) const {
  std::uint32_t released = 0;
  for (std::uint32_t slot = 0; slot < slots_; ++slot) {
    // Also orders this look before a later answer(), which then finds the owner dead.
    const RequestWord seen(table_->slots[slot].word.fetch_or(0, std::memory_order_seq_cst));
    const bool is_pending =
        seen.stage() != RequestStage::kFree && seen.stage() != RequestStage::kTaken;
    if (!is_pending || owners.is_alive(seen.owner())) continue;
    if (change(slot, seen, seen.freed())) ++released;
  }
  return released;
}

std::uint32_t RequestRing::used_slots() const {
  std::uint32_t used = 0;
  for (std::uint32_t slot = 0; slot < slots_; ++slot)
    used += word(slot).stage() != RequestStage::kFree ? 1 : 0;
  return used;
}

}  // namespace cairn
