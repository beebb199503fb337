// SPDX-License-Identifier: Apache-2.0
// A service that takes every descriptor, for tests that write without one.
//
// Thread safety: any thread. Ownership: borrows the memory.
#pragma once

#include <errno.h>

#include "memory/buffer/hand_over.h"
#include "memory/tiers/node_memory.h"

namespace cairn::testing {

class AcceptingService : public HandOver {
 public:
  bool hand_over(ObjectIndex index, const Backing&) override {
    memory->objects().at(index).set(kObjectHandedOver);
    return true;
  }
  int request_flush(ObjectIndex, bool) override { return -EBADF; }
  void discarded(ObjectIndex) override {}
  const NodeMemory* memory = nullptr;
};

}  // namespace cairn::testing
