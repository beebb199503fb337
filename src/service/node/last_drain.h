// SPDX-License-Identifier: Apache-2.0
// The drains before a node ends: what they cannot store, the log names.
//
// Thread safety: the main thread. Ownership: borrows everything.
#pragma once

#include <functional>
#include <vector>

#include "memory/tiers/node_memory.h"
#include "service/node/end_signals.h"
#include "service/write_back/drain.h"

namespace cairn::node {

class LastDrain {
 public:
  LastDrain(const NodeMemory& memory, StoreFiles& files, Flusher& flusher)
      : memory_(memory), files_(files), flusher_(flusher) {}

  // A signal that comes meanwhile ends the wait, and so does `is_given_up`, which may be empty.
  DrainOutcome run(EndSignals& signals, const std::function<bool()>& is_given_up) const;
  // Returns whether all is stored; names what is not.
  bool run_and_tell(EndSignals& signals) const;
  // The last of all, unless the user does not want to wait. Returns whether all is stored.
  bool finish(bool at_once) const;
  static void log_unstored(const std::vector<UnstoredFile>& left);

 private:
  const NodeMemory& memory_;
  StoreFiles& files_;
  Flusher& flusher_;
};

}  // namespace cairn::node
