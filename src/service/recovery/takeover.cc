// SPDX-License-Identifier: Apache-2.0
#include "service/recovery/takeover.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/crash_point.h"
#include "memory/arena/client_slot.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/tiers/actor.h"
#include "memory/tiers/memory_map.h"
#include "service/attachment/process_look.h"
#include "service/recovery/block_mending.h"
#include "service/recovery/board_mending.h"
#include "service/recovery/recount.h"

namespace cairn::node {
namespace {

Status check_identity(const NodeMemory& memory) {
  const NodeIdentity& found = memory.identity();
  MemoryShape agreed = memory.shape();
  // As the segment was made, which may be less than was asked for.
  agreed.huge_pages = found.shape.huge_pages;
  const bool is_same = found.magic == kControlMagic && found.layout_version == kLayoutVersion &&
                       found.layout_digest == MemoryMap(memory.shape()).digest() &&
                       std::memcmp(&found.shape, &agreed, sizeof agreed) == 0;
  if (is_same) return Status::ok();
  return {StatusCode::kIncompatible, "the memory of the dead service is of another shape"};
}

// Calls visit(ObjectIndex, Object&) for every object that is live.
template <typename Visit>
void for_each_object(const NodeMemory& memory, Visit&& visit) {
  const std::uint32_t used = memory.objects().used();
  for (std::uint32_t number = 1; number < used; ++number) {
    Object& object = memory.objects().at(static_cast<ObjectIndex>(number));
    if (object.has(kObjectLive)) visit(static_cast<ObjectIndex>(number), object);
  }
}

// The dead service may have counted itself out of a through mode and not have told those who write
// through the kernel meanwhile (invariant 4 of Object). To be told in vain costs them one write.
// Before the lock can be anybody else's.
void end_through_of_dead(const NodeMemory& memory) {
  for_each_object(memory, [](ObjectIndex, Object& object) {
    if (object.lock.holder().slot() == ClientSlot::kOfService)
      object.shape_sequence.fetch_add(Object::kThroughEnded, std::memory_order_seq_cst);
  });
}

// What the dead service had opened for itself. Returns how many opens there were.
std::uint32_t close_opens(Actor& actor, ObjectIndex index, Object& object) {
  if (object.service_opens.load() == 0) return 0;
  const std::uint32_t left = std::min(object.service_opens.exchange(0), object.opens.load());
  for (std::uint32_t count = 0; count < left; ++count) abandon_object(actor, index, false);
  return left;
}

void mend_objects(Actor& actor, Takeover* found) {
  CAIRN_DCHECK(static_cast<bool>(actor.self));
  constexpr std::uint8_t kNumberBitsMax = 32;
  for_each_object(*actor.memory, [&](ObjectIndex index, Object& object) {
    // What the dead service did about the file has ended, and its descriptors are not known yet.
    for (const ObjectMark mark : {kMarkBeingFlushed, kMarkFetchedFrom}) {
      if (object.is_marked(mark)) object.mark(mark, false);
    }
    found->opens += close_opens(actor, index, object);
    if (object.number_bits.load() <= kNumberBitsMax) return;
    object.number_bits.store(kNumberBitsMax);
    ++found->mended;
  });
}

// A service makes no holds, so one of its slot is nobody's.
void mend_holds(Actor& actor, Takeover* found) {
  const NodeMemory& memory = *actor.memory;
  const DescriptionTable& descriptions = memory.descriptions();
  std::vector<Owner> services;
  const std::uint32_t used = descriptions.used_holds();
  for (std::uint32_t number = 1; number < used; ++number) {
    const auto hold = static_cast<HoldIndex>(number);
    if (descriptions.free_unsound(hold, memory.slot_count(), memory.objects().capacity())) {
      ++found->holds;
      continue;
    }
    const DescriptionTable::HoldView seen = descriptions.view(hold);
    if (seen.kind == HoldKind::kFree || memory.owners().is_alive(seen.owner)) continue;
    const bool is_known = std::find(services.begin(), services.end(), seen.owner) != services.end();
    if (seen.owner.slot() == ClientSlot::kOfService && !is_known) services.push_back(seen.owner);
  }
  std::vector<TransitHold> in_transit;
  found->holds += sweep_holds(actor, services, &in_transit);
  for (const TransitHold& hold : in_transit) release_transit(actor, hold);
}

// No client is watched yet: what waits for a dead one, or for nobody, looks for itself.
class WatchMeanwhile {
 public:
  explicit WatchMeanwhile(NodeMemory& memory)
      : memory_(memory), look_(memory), before_(memory.owners().watch_with(&look_)) {}
  ~WatchMeanwhile() { (void)memory_.owners().watch_with(before_); }
  WatchMeanwhile(const WatchMeanwhile&) = delete;
  WatchMeanwhile& operator=(const WatchMeanwhile&) = delete;

 private:
  NodeMemory& memory_;
  const ProcessLook look_;
  const OwnerWatch* const before_;
};

// A death leaves nothing to mend, so one round is the rule. Where a stray word was, the next may
// find what depended on it.
void settle_blocks(Actor& actor, Takeover* found) {
  constexpr int kRoundsMax = 4;
  std::uint32_t mended = 1;
  for (int round = 0; round < kRoundsMax && mended != 0; ++round) {
    mended = mend_places(actor);
    const SweepCounts swept = sweep_buckets(actor);
    found->swept.blocks_unlocked += swept.blocks_unlocked;
    found->swept.buckets_freed += swept.buckets_freed;
    found->swept.slabs += swept.slabs;
    mended += mend_blocks(actor);
    found->mended += mended;
  }
}

Actor actor_of(const NodeMemory& memory, Owner self) {
  Actor actor;
  actor.memory = &memory;
  actor.self = self;
  actor.counters = &memory.slot(self.slot()).shards[0];
  return actor;
}

}  // namespace

Result<Takeover> take_over(NodeMemory& memory) {
  CAIRN_CHECK(memory.slot_count() > ClientSlot::kOfService);
  CAIRN_RETURN_IF_ERROR(check_identity(memory));
  CAIRN_CRASH_POINT("takeover.begun");
  const WatchMeanwhile watch(memory);
  Takeover found;
  found.was_leaving = memory.service_board().detached.load() != 0;
  end_through_of_dead(memory);
  CAIRN_CRASH_POINT("takeover.through-ended");
  // First, so that nobody takes the new name for that of the process that has ended.
  memory.slot(ClientSlot::kOfService).pid.store(::getpid());
  found.service = memory.owners().succeed(ClientSlot::kOfService);
  CAIRN_CHECK(found.service.slot() == ClientSlot::kOfService);
  CAIRN_CRASH_POINT("takeover.named");
  found.requests = memory.requests().return_taken();
  (void)memory.requests().release_dead(memory.owners());
  CAIRN_CRASH_POINT("takeover.requests-returned");
  found.mended += mend_boards(memory);
  Actor actor = actor_of(memory, found.service);
  found.locks = sweep_locks(actor);
  CAIRN_CRASH_POINT("takeover.locks-swept");
  sweep_cut_writes_of_dead(memory);  // before others read what they had begun to write
  settle_blocks(actor, &found);
  CAIRN_CRASH_POINT("takeover.blocks-settled");
  found.unsettled = sweep_settlings(actor);
  (void)sweep_cuts(actor);
  mend_objects(actor, &found);
  CAIRN_CRASH_POINT("takeover.objects-mended");
  mend_holds(actor, &found);
  CAIRN_CRASH_POINT("takeover.holds-mended");
  found.corrected = correct_counts_of_blocks(memory);
  CAIRN_CRASH_POINT("takeover.recounted");
  actor.drop_leases();
  return found;
}

}  // namespace cairn::node
