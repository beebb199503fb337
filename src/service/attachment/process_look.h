// SPDX-License-Identifier: Apache-2.0
// Tells whether the client that holds what somebody waits for has ended, while nobody watches
// clients: in a rescue, and in a takeover before the clients of the dead service are adopted.
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
  bool nobody_has(std::uint16_t slot) const;

  const NodeMemory& memory_;
};

}  // namespace cairn::node
