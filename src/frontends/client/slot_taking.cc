// SPDX-License-Identifier: Apache-2.0
#include "frontends/client/slot_taking.h"

#include "base/check.h"
#include "frontends/client/descriptor_identity.h"

namespace cairn {

SlotClaim choose_offer(const NodeMemory& memory, int socket, std::int32_t service) {
  if (memory.slot(ClientSlot::kOfService).pid.load() != service) return {};
  if (memory.service_board().detached.load() != 0) return {};
  // No two sockets have one inode at a time.
  const auto token = static_cast<std::uint32_t>(inode_of(socket));
  if (token == 0) return {};
  // Processes that start together begin at different places.
  const ServiceBoard& board = memory.service_board();
  for (unsigned step = 0; step < ServiceBoard::kOffersMax; ++step) {
    const unsigned place = (token + step) % ServiceBoard::kOffersMax;
    const std::uint32_t slot = board.offers[place].load(std::memory_order_acquire);
    if (slot <= ClientSlot::kOfService || slot >= memory.slot_count()) continue;
    const std::uint32_t number =
        memory.slot(static_cast<std::uint16_t>(slot)).offer.number_if_open();
    if (number != 0) return {slot, number, token};
  }
  return {};
}

Owner take_slot(const NodeMemory& memory, const SlotClaim& claim, const Claimant& claimant) {
  CAIRN_DCHECK(static_cast<bool>(claim) && claim.slot < memory.slot_count());
  const auto index = static_cast<std::uint16_t>(claim.slot);
  ClientSlot& slot = memory.slot(index);
  if (!slot.offer.take(claim)) return {};
  // As the service writes them when it reads the greeting. Until then waiters look for the process
  // by this number, should the service die, and slabs are counted for the run.
  slot.pid.store(claimant.process, std::memory_order_relaxed);
  slot.run.store(claimant.run, std::memory_order_relaxed);
  std::uint32_t nobody = raw(AccountId::kNobody);
  slot.account.compare_exchange_strong(nobody, raw(memory.accounts().of_run(claimant.run)),
                                       std::memory_order_relaxed);
  const Owner self = memory.owners().current(index);
  CAIRN_DCHECK(static_cast<bool>(self));
  return self;
}

}  // namespace cairn
