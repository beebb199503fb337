// SPDX-License-Identifier: Apache-2.0
// Programs that wait for the store come before what is brought in ahead.
//
// Thread safety: any thread.
#pragma once

#include <cstdint>
#include <span>

#include "memory/tiers/node_memory.h"
#include "service/learning/read_streams.h"

namespace cairn::node {

// Waits while a process in one of these slots reads from the store, but 20 ms at most: a program
// that never stops asking does not stop all others. Returns whether it has waited.
//
// `said`: files of which processes have said what they need. To bring that in is what their reads
// wait for: without it each of them would ask for a block at a time, and wait for the store alone.
bool wait_for_demand(const NodeMemory& memory, std::span<const std::uint16_t> slots,
                     std::span<const FileOfProcess> said = {});

}  // namespace cairn::node
