// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/orphaned_node.h"

#include <atomic>

#include "base/clock.h"
#include "frontends/client/session.h"
#include "frontends/files/live_objects.h"

namespace cairn {
namespace {

constexpr std::uint32_t kEveryMs = 8;  // two ticks of the coarse clock

constinit std::atomic<std::uint32_t> looked_ms{0};
constinit std::atomic<bool> is_orphaned{false};

// In this order, as a service does that leaves (service/write_back/detachment.h): a writer that no
// longer finds the mark asks for a service, and hears that there is none.
void detach(const NodeMemory& memory) {
  std::uint32_t attached = ServiceBoard::kAttached;
  memory.service_board().detached.compare_exchange_strong(attached, ServiceBoard::kOrphaned,
                                                          std::memory_order_seq_cst);
  for_each_live_object(memory.objects(), [&](ObjectIndex index, const Object&) {
    memory.objects().at(index).clear(kObjectHandedOver);
    return true;
  });
}

}  // namespace

bool notice_lost_node() {
  const std::uint32_t now = monotonic_coarse_ms() | 1;
  const std::uint32_t before = looked_ms.load(std::memory_order_relaxed);
  if (now - before < kEveryMs || is_orphaned.load(std::memory_order_relaxed)) return false;
  looked_ms.store(now, std::memory_order_relaxed);
  // A short program has just heard of the node.
  if (before == 0) return false;
  Session& session = Session::instance();
  if (!session.is_attached()) return false;
  const NodeMemory& memory = session.memory();
  memory.look_after_service();
  // A node that has left in order has stored everything itself.
  if (memory.has_service() || is_orphaned.exchange(true)) return false;
  if (session.actor_if_any() == nullptr) return false;
  detach(memory);
  return true;
}

}  // namespace cairn
