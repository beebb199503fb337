// SPDX-License-Identifier: Apache-2.0
// Waits until what is reserved is there: what others have in its place has to be stored or moved
// first.
//
// Thread safety: any thread. Ownership: borrows everything.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "memory/tiers/node_memory.h"
#include "service/capacity/account_registry.h"
#include "service/control/control_server.h"

namespace cairn::node {

// For the reservations of a run and of its rules; of run 0, for those of the node's rules. As long
// as less and less is missing, it is waited for.
// Errors: kExhausted when nothing more leaves, or nobody wants it any longer.
Status wait_for_reservations(const NodeMemory& memory, const AccountRegistry& accounts,
                             const ControlPeer& peer, std::uint32_t run);

}  // namespace cairn::node
