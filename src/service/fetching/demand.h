// SPDX-License-Identifier: Apache-2.0
// Programs that wait for the store come before what is brought in ahead.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <span>

#include "memory/tiers/node_memory.h"

namespace cairn::node {

// Waits while a process in one of these slots reads from the store, but 20 ms at most: a program
// that never stops asking does not stop all others.
void wait_for_demand(const NodeMemory& memory, std::span<const std::uint16_t> slots);

}  // namespace cairn::node
