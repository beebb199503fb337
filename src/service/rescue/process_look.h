// SPDX-License-Identifier: Apache-2.0
// Tells a rescue whether the client that holds what it waits for has ended: nobody else watches
// clients then.
//
// Thread safety: any thread. Ownership: borrows the memory.
#pragma once

#include "memory/tiers/node_memory.h"

namespace cairn::node {

class ProcessLook final : public OwnerWatch {
 public:
  explicit ProcessLook(const NodeMemory& memory) : memory_(memory) {}
  bool is_gone(Owner owner) const override;

 private:
  const NodeMemory& memory_;
};

}  // namespace cairn::node
