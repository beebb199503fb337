// SPDX-License-Identifier: Apache-2.0
// A process takes a slot that the service offers, without waiting for the service; the states are
// in memory/arena/slot_offer.h.
//
// Thread safety: one thread, that of the attach. Ownership: borrows the memory.
#pragma once

#include <cstdint>

#include "frontends/protocol/protocol.h"

namespace cairn {

// An open offer, for the greeting on `socket`. Nothing when there is none, or when the service's
// numbers of processes are not ours: then a death before the service has read the greeting could
// not be told from a life.
SlotClaim choose_offer(const NodeMemory& memory, int socket, std::int32_t service);

struct Claimant {
  std::int32_t process = 0;
  std::uint32_t run = 0;
};

// After the greeting: the claimant's name from here on; nobody when another process was faster.
Owner take_slot(const NodeMemory& memory, const SlotClaim& claim, const Claimant& claimant);

}  // namespace cairn
