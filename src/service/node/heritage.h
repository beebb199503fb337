// SPDX-License-Identifier: Apache-2.0
// What outlives each service of a node, and what this one has from the one before.
//
// Thread safety: the main thread, while the service is composed. Ownership: the memory is the
// keeper's; descriptors are closed when nobody has taken them.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/check.h"
#include "service/control/control_server.h"
#include "service/keeping/inheritance.h"
#include "service/keeping/keeper.h"
#include "service/keeping/kept_descriptors.h"
#include "service/keeping/kept_text.h"
#include "service/process/log.h"
#include "service/recovery/takeover.h"

namespace cairn::node {

struct Heritage {
  // Looks at all descriptors that are open: before this service opens any.
  explicit Heritage(Succession& from)
      : memory(from.memory),
        life(*from.life),
        labels(memory),
        state(memory),
        log_replayed(memory.take<std::atomic<std::uint32_t>>(1).front()) {
    CAIRN_CHECK(from.life != nullptr);
    if (!from.is_successor()) return;
    left.emplace(labels);
    control = find_left_control(labels, left->sockets());
    if (control.listener >= 0) left->give(control.listener);
    for (const LeftControl::Connection& each : control.connections) left->give(each.socket);
  }
  KeptMemory& memory;
  KeptLife& life;
  KeptDescriptors labels;
  KeptText state;
  std::atomic<std::uint32_t>& log_replayed;  // 0: no service has come so far (replay_at_start.h)
  std::optional<Inheritance> left;           // none: it is the first
  LeftControl control;
  int launcher = -1;  // a pipe to the launcher, until the service is ready; -1: none
};

// Into the node's log.
inline void log_takeover(const Takeover& taken) {
  log::info(
      "taken over: {} blocks unlocked, {} buckets and {} slabs returned, {} locks, {} requests",
      taken.swept.blocks_unlocked, taken.swept.buckets_freed, taken.swept.slabs, taken.locks,
      taken.requests);
  if (taken.mended + taken.corrected + taken.unsettled != 0) {
    log::info("put in order: {} words, {} counts, {} files being settled", taken.mended,
              taken.corrected, taken.unsettled);
  }
}

}  // namespace cairn::node
