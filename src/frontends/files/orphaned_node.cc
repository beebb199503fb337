// SPDX-License-Identifier: Apache-2.0
#include "frontends/files/orphaned_node.h"

#include <atomic>

#include "base/check.h"
#include "base/clock.h"
#include "frontends/descriptors/descriptor_table.h"
#include "frontends/descriptors/open_file.h"
#include "frontends/files/live_objects.h"
#include "memory/buffer/object_lifecycle.h"

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

void store_own_files(Actor& actor) {
  DescriptorTable::for_each([&](int, OpenFile& file) {
    if (!file.may_write || file.object == ObjectIndex::kNone) return;
    const Object& object = actor.object(file.object);
    if (object.dirty_blocks.load() == 0 && !object.has(kObjectTimesDirty)) return;
    // An error is the object's: the next fsync or close of the file reports it.
    (void)sync_object(access_of(actor, file), false, nullptr);
  });
}

}  // namespace

bool store_by_own_writer(Actor& actor, ObjectIndex object, bool durable) {
  bool is_stored = false;
  DescriptorTable::for_each([&](int, OpenFile& file) {
    if (is_stored || !file.may_write || file.object != object) return;
    is_stored = sync_object(access_of(actor, file), durable, nullptr) == 0;
  });
  return is_stored;
}

void look_after_node() {
  const std::uint32_t now = monotonic_coarse_ms() | 1;
  const std::uint32_t before = looked_ms.load(std::memory_order_relaxed);
  if (now - before < kEveryMs || is_orphaned.load(std::memory_order_relaxed)) return;
  looked_ms.store(now, std::memory_order_relaxed);
  // A short program has just heard of the node.
  if (before == 0) return;
  Session& session = Session::instance();
  if (!session.is_attached()) return;
  const NodeMemory& memory = session.memory();
  memory.look_after_service();
  // A node that has left in order has stored everything itself.
  if (memory.is_served() || is_orphaned.exchange(true)) return;
  Actor* actor = session.actor_if_any();
  if (actor == nullptr) return;
  CAIRN_DCHECK(actor->memory == &memory);
  detach(memory);
  store_own_files(*actor);
}

}  // namespace cairn
