// SPDX-License-Identifier: Apache-2.0
// What a successor finds of the dead service's client table.
//
// A seat is legal at every step of a change: its state is written last when it is taken, and first
// when it is left.
//
// Thread safety: the client table's lock. Ownership: lies in kept memory.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>

#include "base/ids.h"
#include "memory/arena/client_slot.h"
#include "memory/arena/counters.h"
#include "service/attachment/attach_events.h"

namespace cairn::node {

using CounterSums = std::array<std::uint64_t, kCounters>;
using Departure = AttachEvents::Departure;

// One for each slot.
struct KeptSeat {
  SlotState state;
  pid_t pid;
  std::uint32_t run;
  std::uint32_t owner_bits;  // while it is active or reaped
  Departure how;             // it is reaped
  bool is_inherited;         // it is reaped, and its process's new image has what it wants
  char command[sizeof ClientSlot::command];
};

// What the clients of one run have counted that have gone.
struct KeptRun {
  std::uint32_t run;
  bool is_used;
  bool attached;
  AccountId account;
  CounterSums sums;
};

// A program that is not buffered and runs still.
struct KeptForeign {
  pid_t pid;  // 0: none
  std::uint32_t run;
  char command[sizeof ClientSlot::command];
};

}  // namespace cairn::node
