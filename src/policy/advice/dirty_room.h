// SPDX-License-Identifier: Apache-2.0
// What becomes of written data where a buffer of limited room takes it and a store drains it: a
// fluid queue that is not in equilibrium ("Two-tier models", section 5, equations 1 to 4: what is
// in the queue grows by the difference of the rates, and does not fall below 0).
//
// Assumes that the store is free for the drain whenever something is dirty, and that within each
// part of the time the writes come evenly.
//
// Thread safety: pure function. Units: bytes, seconds, bytes per second.
#pragma once

#include "policy/advice/access_summary.h"

namespace cairn::advice {

struct DrainedWrites {
  double stall_seconds = 0;  // the programs wait for room
  double drain_seconds = 0;  // from the last access on, until all is stored
  double highest_bytes = 0;  // dirty at a time
};

// Requires: rate > 0, room_bytes >= 0.
DrainedWrites drain_writes(const WriteTimes& times, double seconds, double rate, double room_bytes);

}  // namespace cairn::advice
