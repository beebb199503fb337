// SPDX-License-Identifier: Apache-2.0
#include "memory/buffer/object_lifecycle.h"

#include <errno.h>

#include <algorithm>

#include "base/check.h"
#include "base/clock.h"
#include "base/crash_point.h"
#include "base/system_call.h"
#include "memory/backing/posix_backing.h"
#include "memory/backing/size_limit.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/shape_change.h"
#include "memory/flush/flush_object.h"
#include "memory/flush/orphan_words.h"

namespace cairn {
namespace {

bool agrees(const Object& object, const StoreStamp& stamp) {
  return object.store_mtime_ns.load() == stamp.mtime_ns && object.store_size.load() == stamp.size;
}

// Nothing has touched the store's copy since it was last settled.
bool is_as_settled(const Object& object, const StoreStamp& stamp) {
  return agrees(object, stamp) && object.store_ctime_ns.load() == stamp.ctime_ns;
}

bool is_in_flux(const Object& object) {
  return object.dirty_blocks.load() != 0 || object.has(kObjectTimesDirty) ||
         object.through.load() != 0;
}

// Somebody outside changed the file since we looked last: what was read from it then is worth
// nothing. A change that set the time back to what it was shows in the ctime; what programs of the
// node do to it is noted there (adopt_times()), so that it costs nothing.
void revalidate(const ObjectAccess& access, const StoreStamp& seen) {
  Object& object = access.object();
  if (is_in_flux(object) || is_as_settled(object, seen)) return;
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  StoreStatus status;
  // Looked at again under the lock: another client may have settled the file between the caller's
  // look and now.
  if (is_in_flux(object) || access.backing.status(&status) < 0 ||
      is_as_settled(object, status.stamp)) {
    return;
  }
  // Some file systems make their ctimes up at each look; those say nothing.
  if (agrees(object, status.stamp) && status.stamp.ctime_ns != seen.ctime_ns) return;
  end_dead_change(access);
  // Nobody knows whether the other program's bytes are safe.
  object.note_store_owed();
  // Nothing is filled between the old store and the new one.
  const ShapeChange change(object);
  if (drop_blocks(access, 0, UINT64_MAX, false, PlacementReason::kOutdated) < 0 ||
      is_in_flux(object)) {
    return;
  }
  object.size.store(status.stamp.size);
  object.store_size.store(status.stamp.size);
  object.mtime_ns.store(status.stamp.mtime_ns);
  object.ctime_ns.store(status.stamp.ctime_ns);
  object.store_mtime_ns.store(status.stamp.mtime_ns);
  object.store_ctime_ns.store(status.stamp.ctime_ns);
}

// Nobody can reach the data of an unlinked file without descriptions any more. Requires: the caller
// knows that the name is gone, and counts the opens afterwards: an open that the kernel let pass
// before is either still going on, or counted by then.
bool is_out_of_reach(const NodeMemory& memory) {
  return memory.unserved_board().path_descriptors.load(std::memory_order_acquire) == 0 &&
         memory.service_board().openings.load(std::memory_order_seq_cst) == 0;
}

void discard_object(Actor& actor, ObjectIndex index) {
  NoService nobody;
  PosixBacking no_file;
  const ObjectAccess access{actor, index, no_file, nobody};
  (void)drop_blocks(access, 0, UINT64_MAX, true, PlacementReason::kRemoved);
  actor.object(index).clear(kObjectTimesDirty | kObjectFailing);
  ObjectTable& objects = actor.memory->objects();
  if (objects.retire(index, actor.self, actor.owners()))
    (void)objects.reclaim(index, actor.self, actor.owners());
}

// Finds or makes the object of a file. `*look` is taken anew while a record that has been reclaimed
// since may have been the file's: it would know less than that did.
ObjectIndex acquire_object(Actor& actor, Backing& backing, StoreStatus* look, Acquisition* how) {
  ObjectTable& objects = actor.memory->objects();
  for (;;) {
    const ObjectIndex index =
        objects.acquire(look->key, look->stamp, actor.self, actor.owners(), how);
    if (__builtin_expect(!how->is_too_old, 1)) return index;
    const std::uint32_t reclaims = objects.reclaims();
    if (backing.status(look) < 0) return ObjectIndex::kNone;
    look->stamp.reclaims = reclaims;
  }
}

bool is_still_unlinked(Backing& backing) {
  StoreStatus status;
  return backing.status(&status) < 0 || status.links == 0;
}

}  // namespace

ObjectIndex open_object(Actor& actor, Backing& backing, const StoreStatus& seen, bool may_write,
                        HandOver* service) {
  const NodeMemory& memory = *actor.memory;
  Acquisition how;
  StoreStatus status = seen;
  const ObjectIndex index = acquire_object(actor, backing, &status, &how);
  if (index == ObjectIndex::kNone) {
    memory.organizer_board().bell.ring();
    return index;
  }
  if (__builtin_expect(how.begins_through, 0)) {
    const bool is_met = service != nullptr && service->meet_unserved(index) == 0;
    leave_through(actor, index);
    if (!is_met) {
      abandon_object(actor, index, false);
      return ObjectIndex::kNone;
    }
  }
  // The times of a region are made up of those of its file.
  if (status.key.kind != ObjectKind::kRegion)
    memory.stamp_clock().note(std::max(status.stamp.mtime_ns, status.stamp.ctime_ns));
  Object& object = memory.objects().at(index);
  if (may_write) object.writers.fetch_add(1, std::memory_order_seq_cst);
  if (status.links == 0) {
    object.set(kObjectUnlinked);
  } else if (object.has(kObjectUnlinked)) {
    object.clear(kObjectUnlinked);  // linked again through /proc/self/fd
  }
  NoService nobody;
  const ObjectAccess access{actor, index, backing, nobody};
  if (__builtin_expect(is_through_suspected(object), 0)) end_suspected_through(access);
  if (!how.is_new) {
    if (__builtin_expect(object.is_changing_shape(), 0)) wait_for_shape(access);
    if (__builtin_expect(is_through_abandoned(object), 0)) end_abandoned_through(access);
    revalidate(access, status.stamp);
  }
  return index;
}

bool must_grow_past_limit(const Object& object) {
  const std::uint64_t size = object.size.load();
  return size > object.store_size.load() && !is_within_size_limit(size);
}

int settle_object(const ObjectAccess& access) {
  const Object& object = access.object();
  if (!object.has(kObjectTimesDirty) && object.size.load() <= object.store_size.load()) return 0;
  return settle_store(access.actor, access.index, access.backing);
}

namespace {

// To set a size or a time waits for what is just being written to the file, and on a network file
// system for all that its client holds: 100 ms of every step that VPIC writes into a shared file on
// MooseFS. There the flusher stores a file as soon as nobody writes it any more, but for one that
// is to be stored at the end.
bool is_left_to_flusher(const Object& object) {
  if (object.is_marked(kMarkBeingFlushed)) return true;
  return object.has(kObjectRemote) && object.handling().trigger != FlushTrigger::kOnExit &&
         object.dirty_blocks.load(std::memory_order_acquire) != 0;
}

}  // namespace

int close_object(const ObjectAccess& access, bool may_write) {
  Actor& actor = access.actor;
  Object& object = access.object();
  int result = 0;
  const bool was_unlinked = object.has(kObjectUnlinked);
  const bool nameless = was_unlinked && is_still_unlinked(access.backing);
  // Only what was seen: another process may be setting it right now.
  if (was_unlinked && !nameless) object.clear(kObjectUnlinked);
  const bool unlinked = nameless && is_out_of_reach(*actor.memory);
  CAIRN_CRASH_POINT("object.closing");
  const bool is_last_writer =
      may_write && object.writers.fetch_sub(1, std::memory_order_seq_cst) == 1;
  // A program that has replaced the content of a file by other content means the file to have one
  // of the two.
  if (may_write && !unlinked && __builtin_expect(object.is_marked(kMarkRewritten), 0)) {
    object.mark(kMarkRewritten, false);
    if (object.is_made_durable_by_log()) (void)sync_object(access, true, nullptr);
  }
  if (may_write && !unlinked) {
    const bool is_dirty = object.dirty_blocks.load(std::memory_order_acquire) != 0;
    // Its descriptor was lost on the way to the service: nobody else could store it.
    const bool is_unprotected = is_dirty && !object.has(kObjectHandedOver) &&
                                object.handling().mode != BufferingMode::kScratch;
    if (is_unprotected ||
        (is_dirty && actor.memory->unserved_board().foreign_programs.load() != 0)) {
      result = sync_object(access, false, nullptr);
    } else if (is_last_writer && must_grow_past_limit(object)) {
      object.set(kObjectTimesDirty);
      actor.memory->flusher_board().bell.ring();
    } else if (is_last_writer && !is_left_to_flusher(object)) {
      result = settle_object(access);
    }
    if (result == 0 && object.has(kObjectFailing)) {
      result = -static_cast<int>(object.error_number.load());
    }
  }
  // Data that waited for the close is due now, and the flusher may be asleep over it.
  if (may_write &&
      (object.handling().trigger == FlushTrigger::kPerFile || object.has(kObjectRemote))) {
    actor.memory->flusher_board().bell.ring();
  }
  CAIRN_CRASH_POINT("object.settled-at-close");
  if (object.opens.fetch_sub(1, std::memory_order_seq_cst) != 1) return result;
  forget_abandoned_through(actor, access.index);
  if (unlinked) {
    // With a descriptor at the service the record stays, and so its index is still this file's when
    // the message arrives.
    CAIRN_CRASH_POINT("object.discarding");
    const bool is_held = object.is_held_by_service();
    discard_object(actor, access.index);
    if (is_held) access.service.discarded(access.index);
  }
  return result;
}

void abandon_object(Actor& actor, ObjectIndex index, bool may_write) {
  Object& object = actor.object(index);
  if (may_write) object.writers.fetch_sub(1, std::memory_order_seq_cst);
  const bool unlinked = object.has(kObjectUnlinked) && is_out_of_reach(*actor.memory);
  // The flusher discards data that is not stored yet: its descriptor shows whether a name is left.
  if (object.opens.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
  forget_abandoned_through(actor, index);
  if (unlinked && !object.has(kObjectHandedOver)) discard_object(actor, index);
}

void unlink_object(Actor& actor, ObjectIndex index) {
  actor.object(index).set(kObjectUnlinked);
  CAIRN_CRASH_POINT("object.unlinked");
  (void)discard_abandoned(actor, index);
}

bool is_abandoned(const NodeMemory& memory, ObjectIndex index) {
  const Object& object = memory.objects().at(index);
  return object.has(kObjectUnlinked) && is_out_of_reach(memory) &&
         object.opens.load(std::memory_order_acquire) == 0;
}

bool discard_abandoned(Actor& actor, ObjectIndex index) {
  if (!is_abandoned(*actor.memory, index)) return false;
  discard_object(actor, index);
  return true;
}

namespace {

// The service makes the file durable, by its log where that is the file's level. False: it cannot,
// and the caller has to store the file itself.
bool has_service_made_durable(const ObjectAccess& access) {
  const Object& object = access.object();
  const bool is_of_node = object.durability.load(std::memory_order_relaxed) == Durability::kNode &&
                          object.handling().mode != BufferingMode::kSync;
  const int error = is_of_node ? access.service.request_durable(access.index)
                               : access.service.request_flush(access.index, true);
  // One that leaves says no more than that nothing is dirty.
  return error == 0 && access.actor.memory->is_served();
}

int store_object(const ObjectAccess& access, bool durable);

}  // namespace

int sync_object(const ObjectAccess& access, bool durable, std::atomic<std::uint32_t>* error_seen) {
  Object& object = access.object();
  // Scratch promises no durability, so fsync() has nothing to wait for.
  if (durable && object.handling().mode == BufferingMode::kScratch) return 0;
  int result = 0;
  const bool is_for_log = durable && object.through.load() == 0 && object.is_made_durable_by_log();
  if (!is_for_log || !has_service_made_durable(access)) {
    result = store_object(access, durable);
    // What the log has of it is older than what the store has made safe: a crash must not bring it
    // back.
    if (result == 0 && durable) result = end_in_log(access);
  }
  if (result < 0) record_store_error(object, -result);
  if (error_seen != nullptr)
    error_seen->store(object.error_sequence.load(), std::memory_order_relaxed);
  return result;
}

namespace {

// Not where the call itself was wrong, too late or interrupted.
bool is_failure_of_store(int result) {
  return result < 0 && result != -EINVAL && result != -EBADF && result != -EINTR;
}

bool is_left_in_log(const ObjectAccess& access) {
  return access.object().is_in_log() && !access.actor.memory->is_served();
}

int flush_alone(const ObjectAccess& access) {
  Actor& actor = access.actor;
  FlushRequest request(access.index, access.backing);
  const int result = flush_object(actor, request).error;
  return result == 0 ? settle_store(actor, access.index, access.backing) : result;
}

// fsync of the backing file. After a failure all of the object is owed to the store again.
int sync_store(const ObjectAccess& access) {
  Object& object = access.object();
  const std::uint32_t failures = object.sync_failures.load();
  const std::uint32_t owed = object.store_owed.load();
  const int result = access.backing.sync(SyncDepth::kAll);
  // Said twice: an fsync that begins in between finds blocks clean that are to be stored again.
  if (is_failure_of_store(result)) {
    object.note_sync_failure();
    redirty_object(access.actor, access.index);
    object.note_sync_failure();
  }
  // A failure that others have heard of may be one of these bytes'.
  if (result == 0 && object.sync_failures.load() == failures) object.note_store_paid(owed);
  return result;
}

// All of the object, durably, by a program without a service.
int store_alone(const ObjectAccess& access) {
  const Object& object = access.object();
  if (object.dirty_blocks.load() != 0 && !access.backing.is_writable()) return -EIO;
  const std::uint32_t failures = object.sync_failures.load();
  int result = flush_alone(access);
  if (result == 0) result = sync_store(access);
  // The kernel tells one of several that it has dropped what was written.
  return result == 0 && object.sync_failures.load() != failures ? -EIO : result;
}

// A store by a program without a service voids what the log has of the file. Where it leaves no
// word, the next fsync does.
int flush_by_itself(const ObjectAccess& access) {
  if (!is_left_in_log(access)) return flush_alone(access);
  const int result = store_alone(access);
  if (result == 0 && !access.object().is_log_needed())
    (void)void_in_log(*access.actor.memory, access.index);
  return result;
}

int flush_by_service_or_itself(const ObjectAccess& access, bool durable) {
  const Object& object = access.object();
  const bool may_be_long =
      is_within_size_limit(object.size.load()) || !object.has(kObjectHandedOver);
  if (!access.backing.is_writable() || !may_be_long) {
    const int result = access.service.request_flush(access.index, durable);
    if (!durable || access.actor.memory->is_served()) return result;
    // Without a service others store it; the fsync comes after this.
    return access.service.request_flush(access.index, false);
  }
  // The service alone can log newer bytes of what the log has, before the store gets them. A
  // guarded file is stored with the rights of its writer.
  const bool is_for_service =
      object.is_in_log() && !object.has(kObjectGuarded) && access.actor.memory->is_served();
  if (is_for_service && access.service.request_flush(access.index, false) == 0) return 0;
  const int result = flush_by_itself(access);
  // The service may hold deleted files, whose room it gives back before it says the same.
  const bool is_stored_there =
      lacks_room(result) && access.service.request_flush(access.index, durable) == 0;
  return is_stored_there ? 0 : result;
}

int store_object(const ObjectAccess& access, bool durable) {
  Object& object = access.object();
  int result = 0;
  // An entry into through mode is counted before the last blocks are stored.
  const bool is_owed =
      object.through.load() == 0 ? is_in_flux(object) : object.dirty_blocks.load() != 0;
  if (is_owed) result = flush_by_service_or_itself(access, durable);
  if (result == 0 && durable) result = sync_store(access);
  if (result == 0 && durable) object.clear(kObjectFailing);  // what had failed is stored now
  return result;
}

}  // namespace

int leave_log(const ObjectAccess& access) {
  const NodeMemory& memory = *access.actor.memory;
  if (!may_be_left_in_log(memory, access.index)) return 0;
  const int result = store_alone(access);
  if (result != 0) return result;
  CAIRN_CRASH_POINT("orphan.stored");
  if (access.object().is_log_needed()) return -EIO;
  return void_in_log(memory, access.index) == 0 ? 0 : -EIO;
}

int end_in_log(const ObjectAccess& access) {
  const Object& object = access.object();
  const NodeMemory& memory = *access.actor.memory;
  int result = 0;
  if (memory.is_served() && object.is_in_log())
    result = access.service.request_flush(access.index, true);
  if (!memory.is_served()) return leave_log(access);
  // A service may have died over the question; its successor has nothing of the file in the log any
  // more, and says that the program had better store it by itself.
  return object.is_in_log() ? result : 0;
}

void leave_log_if_alone(const ObjectAccess& access) {
  if (__builtin_expect(!is_left_in_log(access), 1)) return;
  // One that may only read could not store, and is nobody's failure.
  if (const int result = flush_by_itself(access); result < 0 && access.backing.is_writable())
    record_store_error(access.object(), -result);
}

void redirty_object(Actor& actor, ObjectIndex index) {
  const Object& object = actor.object(index);
  const std::uint64_t bytes = std::min(object.size.load(), kBlockableBytes);
  const std::uint64_t blocks = (bytes + kBlockBytes - 1) / kBlockBytes;
  for_each_resident(actor, index, 0, blocks, [&](BlockNumber number) {
    LockedBlock block = lock_resident(actor, index, number);
    if (!block) return;
    // Also one that is being stored: its bytes may have been among those that the kernel gave up.
    // The flush in flight sees that the sequence has moved on, and leaves the block dirty.
    block.turn_dirty();
  });
}

void adopt_times(Actor& actor, ObjectIndex index, const StoreStamp& stamp, bool mtime_set) {
  Object& object = actor.object(index);
  if (mtime_set) {
    object.mtime_ns.store(stamp.mtime_ns);
    object.store_mtime_ns.store(stamp.mtime_ns);
    // A flush in flight stamps the store with its own time: settle it once more afterwards. There
    // is none in through mode, and perhaps nobody who could settle it.
    if (object.through.load() == 0 && is_in_flux(object)) object.set(kObjectTimesDirty);
  }
  object.ctime_ns.store(std::max(stamp.ctime_ns, object.ctime_ns.load()));
  object.store_ctime_ns.store(stamp.ctime_ns);
}

VisibleStamp visible_stamp(const Object& object, const StoreStamp& store) {
  VisibleStamp visible{store.size, store.mtime_ns, store.ctime_ns, 0};
  // The store's ctime is that of our write-back until somebody changes the file through the kernel.
  if (object.through.load(std::memory_order_acquire) != 0 && !is_as_settled(object, store)) {
    // A process that has just entered through mode may still be storing the end of the file.
    if (object.blocks.load(std::memory_order_acquire) != 0)
      visible.size = std::max(visible.size, object.size.load(std::memory_order_acquire));
    return visible;
  }
  // The lock is held while the store's times are being set right after a flush.
  const bool in_flux = is_in_flux(object) || static_cast<bool>(object.lock.holder());
  // Changed from outside: the next open takes it over.
  if (!in_flux && !agrees(object, store)) return visible;
  visible.size = object.size.load(std::memory_order_acquire);
  visible.mtime_ns = object.mtime_ns.load(std::memory_order_relaxed);
  const std::int64_t ours = object.ctime_ns.load(std::memory_order_relaxed);
  const bool by_us =
      in_flux || store.ctime_ns == object.store_ctime_ns.load(std::memory_order_relaxed);
  visible.ctime_ns = by_us ? ours : std::max(ours, store.ctime_ns);
  visible.extra_blocks_512 =
      std::uint64_t{object.dirty_blocks.load(std::memory_order_relaxed)} * (kBlockBytes / 512);
  const std::uint64_t most = (visible.size + 511) / 512;
  visible.extra_blocks_512 = std::min(visible.extra_blocks_512, most);
  return visible;
}

}  // namespace cairn
