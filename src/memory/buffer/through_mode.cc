// SPDX-License-Identifier: Apache-2.0
// How an object enters and leaves through mode, in which the kernel has the file.
#include "base/check.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/flush/flush_object.h"

namespace cairn {

// Through mode begins while nobody changes the file's shape, and after the end before it was
// counted. Nor does anybody append: from the moment of the count the kernel alone may say where the
// end is, because there may be some who append without us.
void count_through(Actor& actor, ObjectIndex index) {
  Object& object = actor.object(index);
  OwnedGuard no_appends(object.append_lock, actor.self, actor.owners());
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  object.through.fetch_add(1, std::memory_order_seq_cst);
}

int enter_through(const ObjectAccess& access) {
  Object& object = access.object();
  // Stored while still buffered, so that the application's time is settled too. Without the
  // object's lock: the service takes it when it stores on our behalf.
  if (const int error = sync_object(access, false, nullptr); error < 0) return error;
  count_through(access.actor, access.index);
  // From here on nobody adds a block; what came between is stored and dropped.
  const int error = drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kThrough);
  if (error < 0) {
    leave_through(access.actor, access.index);
    return error;
  }
  // What the log has of it gets older from here on than what the kernel has.
  const int ended = object.is_in_log() ? end_in_log(access) : 0;
  if (ended < 0) {
    leave_through(access.actor, access.index);
    return ended;
  }
  // Somebody's settling may have been overtaken by the last of the data.
  if (object.has(kObjectTimesDirty) && !must_grow_past_limit(object))
    (void)settle_store(access.actor, access.index, access.backing);
  return 0;
}

int finish_entering(const ObjectAccess& access, std::uint64_t offset, std::uint64_t length) {
  if (__builtin_expect(access.object().blocks.load(std::memory_order_acquire) == 0, 1)) return 0;
  return drop_blocks(access, offset, offset + length, false, PlacementReason::kThrough);
}

void leave_through(Actor& actor, ObjectIndex index) {
  Object& object = actor.object(index);
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  object.note_store_owed();
  // If times moved while the kernel had the file, the next stat or open takes them over, because
  // they do not agree with what was settled.
  const std::uint32_t before = object.through.fetch_sub(1, std::memory_order_seq_cst);
  CAIRN_DCHECK(before != 0);
  (void)before;
  // Counted before anybody can enter again: a process that writes through the kernel at this moment
  // finds that the file is not the kernel's any more, or was not for a while.
  object.shape_sequence.fetch_add(Object::kThroughEnded, std::memory_order_seq_cst);
}

}  // namespace cairn
