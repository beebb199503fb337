// SPDX-License-Identifier: Apache-2.0
// A program waits for the backing store, for as long as this is in scope: what is fetched ahead
// gives way to it (service/fetching/demand.h).
//
// Thread safety: the actor's thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/signal_gate.h"
#include "memory/tiers/actor.h"

namespace cairn {

class StoreDemand {
 public:
  explicit StoreDemand(const Actor& actor)
      : demands_(actor.memory->events(actor.self.slot()).demands) {
    demands_.fetch_add(1, std::memory_order_relaxed);
  }
  ~StoreDemand() { demands_.fetch_sub(1, std::memory_order_relaxed); }
  StoreDemand(const StoreDemand&) = delete;
  StoreDemand& operator=(const StoreDemand&) = delete;

 private:
  const SignalGateGuard gate_;  // a handler that jumps out would leave the demand behind
  std::atomic<std::uint32_t>& demands_;
};

}  // namespace cairn
