// SPDX-License-Identifier: Apache-2.0
// One attached process: its identity and its counters.
//
//   state      meaning                                   moved by
//   free       nobody, or a process that has taken it    service: attach -> active
//              and whose greeting is on its way; see
//              memory/arena/slot_offer.h
//   active     a living process holds it                 service, on its death or detach -> reaping
//   reaping    leases, locks and holds are returned      service -> free (generation advanced)
//
// Thread safety: fields but the counters, offer, openings, workers and sending are written by
// the service alone; a process that has taken the slot by itself writes pid, run and account first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/atomic_max.h"
#include "memory/arena/counters.h"
#include "memory/arena/slot_offer.h"

namespace cairn {

enum class SlotState : std::uint32_t { kFree = 0, kActive, kReaping };

struct ClientSlot {
  static constexpr unsigned kShards = 8;
  static constexpr std::uint16_t kOfService = 1;  // the slot of the service itself

  std::atomic<SlotState> state;
  std::atomic<std::int32_t> pid;
  std::atomic<std::uint32_t> run;  // pid of the launcher that started it
  // files that it is opening (frontends/client/opening_guard.h); written by the client
  std::atomic<std::uint32_t> openings;
  // how many of its threads have had an actor, ever: of that many the first kShards have a shard of
  // their own. With one it may die with something of the node in hand.
  std::atomic<std::uint32_t> workers;
  // what it takes of the tiers is counted for this AccountId; see memory/pool/capacity_accounts.h
  std::atomic<std::uint32_t> account;
  // descriptors that it has sent and the service has not received (memory/tiers/descriptor_room.h)
  std::atomic<std::uint32_t> sending;
  char command[28];
  SlotOffer offer;
  CounterShard shards[kShards];

  // A thread is in the midst of two writes, of which its shard shows one.
  void note_untold_write() { raise_to(workers, kShards + 1); }
  // Whether one of its threads changes bytes of that object, which its process may write. Where
  // there are more threads than shards, some do not tell.
  bool may_be_writing(ObjectIndex object) const {
    if (workers.load(std::memory_order_acquire) > kShards) return true;
    for (const CounterShard& shard : shards) {
      if (shard.writing.load(std::memory_order_acquire) == raw(object)) return true;
    }
    return false;
  }
};
static_assert(sizeof(ClientSlot) % 64 == 0, "slots do not share cache lines");
static_assert(offsetof(ClientSlot, shards) == 64, "nor do a slot and its counters");
static_assert(ClientSlot::kOfService != 0, "slot 0 is nobody's");

}  // namespace cairn
