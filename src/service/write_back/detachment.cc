// SPDX-License-Identifier: Apache-2.0
#include "service/write_back/detachment.h"

namespace cairn::node {

// In this order: a client that still finds the mark sees its file as the service's, which stores it
// afterwards; one that does not find it asks the service first, and hears that it has left.
void detach_clients(const NodeMemory& memory, Detachment how) {
  memory.service_board().detached.store(static_cast<std::uint32_t>(how), std::memory_order_seq_cst);
  const ObjectTable& objects = memory.objects();
  const std::uint32_t used = memory.objects().used();
  for (std::uint32_t index = 1; index < used; ++index) {
    Object& object = objects.at(static_cast<ObjectIndex>(index));
    if (object.has(kObjectLive)) object.clear(kObjectHandedOver);
  }
}

}  // namespace cairn::node
