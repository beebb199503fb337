// SPDX-License-Identifier: Apache-2.0
// Which runs are in the middle of their I/O and which compute, as their own calls tell: a run whose
// clients have made file calls since the last look is in an I/O phase.
//
// Thread safety: look() by one thread, is_in_io() by any. Ownership: borrows the memory.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

class RunActivity {
 public:
  explicit RunActivity(const NodeMemory& memory) : memory_(memory) {}

  void look();
  bool is_in_io(std::uint32_t run) const;

 private:
  struct Phase {
    std::uint64_t calls = 0;
    bool in_io = false;
  };
  const NodeMemory& memory_;
  mutable std::mutex mutex_;
  std::map<std::uint32_t, Phase> phases_;
};

}  // namespace cairn::node
