// SPDX-License-Identifier: Apache-2.0
// The view that a learner has of the programs' accesses: batches of events, in the order in which
// each process made them, and the deaths of processes.
//
// Batches, not single events: a learner takes its lock once for all that came since its last turn,
// and a whole batch reaches the most urgent learner before the next one sees any of it.
//
// Each access names its stream (service/learning/stream_table.h), and the streams that end before
// it. An observer keeps its state of a stream in a StreamSlot and drops the state at the end.
//
// An observer must not block, and must bear that events are missing: opens without closes, and
// closes without opens.
//
// Thread safety: the thread of the event reader calls all functions.
#pragma once

#include <cstdint>
#include <span>

#include "memory/arena/event_ring.h"
#include "service/learning/access_stream.h"

namespace cairn::node {

struct ToldAccess {
  AccessEvent event;
  // Null for a close, for a write, and where the event names no open description.
  AccessStream* stream = nullptr;
  bool opens = false;  // it is the first that the node hears of its open description
  StreamEnds ends;     // before it; of a close: with it

  std::uint16_t slot() const { return event.owner.slot(); }
};

class AccessObserver {
 public:
  virtual void on_accesses(std::span<const ToldAccess> batch) = 0;
  // Processes have died, and the batches before this call held all that they told. `ends` ended
  // with them.
  virtual void on_deaths(const StreamEnds& ends) { (void)ends; }

 protected:
  ~AccessObserver() = default;
};

}  // namespace cairn::node
