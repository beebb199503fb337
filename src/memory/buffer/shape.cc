// SPDX-License-Identifier: Apache-2.0
// Operations that change which bytes a file has: truncation, allocation, hole punching.
#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/clock.h"
#include "base/system_call.h"
#include "memory/backing/size_limit.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/shape_change.h"
#include "memory/buffer/write_under_way.h"
#include "memory/flush/flush_object.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// Zeros the rest of the page of a block in which the file ends from now on. The page stays as clean
// or dirty as before.
int zero_tail(const ObjectAccess& access, const UnclaimedBlock& block, std::size_t keep) {
  const std::size_t page = keep / kPageBytes * kPageBytes;
  const std::size_t kept = keep - page;
  CAIRN_DCHECK(kept != 0 && page < access.actor.memory->bucket_bytes(block.bucket()));
  const TierPlace place = access.actor.memory->place_of(block.bucket(), page, kPageBytes);
  if (std::byte* bytes = place.address(); bytes != nullptr) {
    zero_shared(bytes + kept, kPageBytes - kept);
    return 0;
  }
  std::byte* bounce = access.actor.bounce_blocks();
  if (bounce == nullptr) return -ENOMEM;
  if (const int error = place.read(bounce); error < 0) return error;
  std::memset(bounce + kept, 0, kPageBytes - kept);
  return place.write(bounce);
}

// Cuts the block in which the new end lies: later pages go, and the rest of the last page reads as
// zeros.
int cut_block(const ObjectAccess& access, std::uint64_t size) {
  Actor& actor = access.actor;
  const std::size_t keep = size & (kBlockBytes - 1);
  if (keep == 0 || size >= kBlockableBytes) return 0;
  for (;;) {
    LockedBlock block = lock_resident(actor, access.index, block_of(size));
    if (!block) return 0;
    UnclaimedBlock unclaimed(block);
    if (!unclaimed) {
      static_cast<LockedBlock&&>(block).unlock_and_wait();
      continue;
    }
    const std::uint16_t tail_page = pages_touched(keep - 1, keep);
    unclaimed.cut(pages_touched(0, keep));
    const bool has_tail = (unclaimed.descriptor().valid_pages() & tail_page) != 0;
    if (!has_tail || keep % kPageBytes == 0) return 0;
    const int error = zero_tail(access, unclaimed, keep);
    if (error == 0) return 0;
    // The device of the tier may have failed; of what is clean the store has everything.
    const BlockDescriptor& descriptor = unclaimed.descriptor();
    const bool is_lost = (descriptor.dirty_pages() & tail_page) != 0;
    if (is_lost) return is_failure_of_tier(error) ? -EIO : error;
    if (descriptor.dirty_pages() != 0) {
      unclaimed.cut(static_cast<std::uint16_t>(descriptor.valid_pages() & ~tail_page));
    } else {
      discard_block(actor, static_cast<UnclaimedBlock&&>(unclaimed), PlacementReason::kCut);
    }
    return 0;
  }
}

// Writes down how the store was at a look. Requires: the extend lock, so that no write of ours
// hides behind the look.
void note_store(const ObjectAccess& access, const StoreStamp& stamp) {
  Object& object = access.object();
  access.actor.memory->stamp_clock().note(stamp.mtime_ns);
  // The kernel's size and times are the truth while the file is its own.
  const bool is_kernels = object.through.load() != 0;
  const std::int64_t mtime =
      is_kernels ? stamp.mtime_ns : never_back(object.mtime_ns.load(), stamp.mtime_ns);
  // A stamp that the store does not bear is settled there later.
  if (mtime != stamp.mtime_ns) object.set(kObjectTimesDirty);
  object.mtime_ns.store(mtime);
  object.ctime_ns.store(never_back(object.ctime_ns.load(), stamp.ctime_ns));
  object.store_mtime_ns.store(stamp.mtime_ns);
  object.store_ctime_ns.store(stamp.ctime_ns);
  object.store_size.store(stamp.size);
}

// `*stored_size` gets how long the store's file is, if it can be asked.
void adopt_store(const ObjectAccess& access, std::uint64_t* stored_size = nullptr) {
  const Actor& actor = access.actor;
  // Bytes that a write adds in between must not be taken for zeros.
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  StoreStatus status;
  if (access.backing.status(&status) < 0) return;
  note_store(access, status.stamp);
  if (stored_size != nullptr) *stored_size = status.stamp.size;
}

// The store first: if it refuses, nothing has happened. Afterwards pages are filled with zeros from
// the new end on. The store's size tells the successor of a process that died in here that the file
// was cut.
int cut_store(const ObjectAccess& access, std::uint64_t size) {
  Object& object = access.object();
  const Actor& actor = access.actor;
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  CAIRN_DCHECK(object.is_changing_shape() && object.lock.holder() == actor.self);
  // A store that is shorter yet is made longer by the service, where this process may not.
  const bool is_allowed = is_within_size_limit(size);
  const std::uint64_t stored = is_allowed ? size : std::min(size, object.store_size.load());
  if (const int error = access.backing.truncate(stored); error < 0) return error;
  object.size.store(size, std::memory_order_seq_cst);
  object.store_size.store(stored, std::memory_order_seq_cst);
  if (stored < size) object.set(kObjectTimesDirty);
  return 0;
}

// Where the first block begins that a file of this size does not need.
std::uint64_t first_unused(std::uint64_t size) {
  return (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

// The blocks follow the store. Requires: a change of shape under way, so that none comes meanwhile.
int cut_blocks(const ObjectAccess& access, std::uint64_t size, std::uint64_t before) {
  CAIRN_DCHECK(access.object().is_changing_shape());
  CAIRN_DCHECK(access.object().lock.holder() == access.actor.self);
  const std::uint64_t first_gone = first_unused(size);
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    int error =
        drop_blocks(access, first_gone, std::max(first_gone, before), true, PlacementReason::kCut);
    if (error == 0) error = cut_block(access, size);
    std::uint64_t stored = 0;
    adopt_store(access, &stored);
    if (error < 0 || stored <= size) return error;
    // A flush that was on its way, or a write past the tiers that will be repeated, has made it
    // longer again. That write has arrived now.
    if (error = access.backing.truncate(size); error < 0) return error;
  }
  return -EBUSY;
}

int grow_store(const ObjectAccess& access, std::uint64_t size) {
  const Actor& actor = access.actor;
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  // A write beside us has made it longer than the wanted size: not to be cut.
  const std::uint64_t stored = access.object().store_size.load(std::memory_order_acquire);
  if (stored > size) return 0;
  // It has this size for the program, which may not make it so long itself.
  if (!is_within_size_limit(size) && stored < size && access.object().size.load() >= size) return 0;
  const bool has_size = access.object().size.load() == size && stored == size;
  return has_size ? access.backing.truncate_as_called(size) : access.backing.truncate(size);
}

// A file that was cut to nothing gets new bytes.
void note_replacing(Object& object) {
  if (object.durability.load(std::memory_order_relaxed) == Durability::kNode)
    object.mark(kMarkRewritten, true);
}

// Neither the log nor an fsync has the new size.
void note_rewritten(Object& object, std::uint64_t size) {
  object.note_store_owed();
  if (size == 0) note_replacing(object);
}

// True for an empty file that is cut and was there before: no open cuts one that its birth time
// shows to be new. The clocks of other hosts prove nothing. A program that cuts what it has just
// made by a call of its own pays as well, as it does with ext4.
bool was_there_before(const Object& object) {
  return object.is_in_log() || (object.birth_ns != 0 && !object.has(kObjectRemote));
}

// The kernel has the file.
int truncate_through(const ObjectAccess& access, std::uint64_t size) {
  if (const int error = finish_entering(access, 0, UINT64_MAX); error < 0) return error;
  if (const int error = access.backing.truncate_as_called(size); error < 0) return error;
  if (!adopt_kernel_state(access)) access.object().size.store(size);
  return 0;
}

}  // namespace

int drop_blocks(const ObjectAccess& access, std::uint64_t begin, std::uint64_t end,
                bool discard_dirty, PlacementReason reason) {
  if (begin >= end || begin >= kBlockableBytes) return 0;
  Actor& actor = access.actor;
  const std::uint32_t first = raw(block_of(begin));
  const std::uint64_t past = std::min<std::uint64_t>(((end - 1) >> kBlockShift) + 1, UINT32_MAX);
  int result = 0;
  // Writers may dirty a block between its flush and its drop, so a few rounds may be needed.
  constexpr int kRounds = 1000;
  for (int round = 0; round < kRounds; ++round) {
    bool left = false;
    for_each_resident(actor, access.index, first, past, [&](BlockNumber number) {
      LockedBlock block = lock_resident(actor, access.index, number);
      if (!block) return;
      UnclaimedBlock unclaimed(block);
      if (!unclaimed) {
        static_cast<LockedBlock&&>(block).unlock_and_wait();
        left = true;
      } else if (discard_dirty || unclaimed.descriptor().dirty_pages() == 0) {
        discard_block(actor, static_cast<UnclaimedBlock&&>(unclaimed), reason);
      } else {
        left = true;
      }
    });
    if (!left) return 0;
    if (discard_dirty) continue;
    if (access.backing.is_writable()) {
      FlushRequest request(access.index, access.backing);
      request.begin = offset_of(static_cast<BlockNumber>(first));
      request.end = past << kBlockShift;
      request.reason = reason;
      result = flush_object(actor, request).error;
    } else {
      result = access.service.request_flush(access.index, false);
    }
    if (result < 0) return result;
  }
  return -EBUSY;
}

// Requires: the object's lock. Ends what a process has begun that died: no bytes that it cut may
// come back when the file grows again.
void end_dead_change(const ObjectAccess& access) {
  Object& object = access.object();
  CAIRN_DCHECK(object.lock.holder() == access.actor.self);
  if (__builtin_expect(!object.is_changing_shape(), 1)) return;
  const std::uint64_t before = object.size.load();
  StoreStatus status;
  const bool was_cut = access.backing.status(&status) == 0 &&
                       status.stamp.size < object.store_size.load(std::memory_order_acquire);
  const std::uint64_t size = was_cut ? std::min(status.stamp.size, before) : before;
  object.size.store(size, std::memory_order_seq_cst);
  (void)cut_blocks(access, size, UINT64_MAX);
  object.shape_sequence.fetch_add(1, std::memory_order_seq_cst);
}

// A death before the new size was written down leaves the old one, behind which there is nothing.
void drop_cut_blocks(const ObjectAccess& access) {
  CAIRN_DCHECK(access.object().is_changing_shape());
  CAIRN_DCHECK(access.object().lock.holder() == access.actor.self);
  const std::uint64_t first = first_unused(access.object().size.load());
  (void)drop_blocks(access, first, UINT64_MAX, true, PlacementReason::kCut);
}

void wait_for_shape(const ObjectAccess& access) {
  OwnedGuard guard(access.object().lock, access.actor.self, access.actor.owners());
  end_dead_change(access);
}

bool adopt_kernel_state(const ObjectAccess& access) {
  Object& object = access.object();
  const Actor& actor = access.actor;
  CAIRN_DCHECK(object.lock.holder() == actor.self);
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  std::uint64_t seen = object.size.load();
  StoreStatus status;
  do {
    if (access.backing.status(&status) < 0) return false;
    // A writer beside us makes the file longer first and publishes the size afterwards. So a size
    // that changed under this look makes it look again.
  } while (seen != status.stamp.size &&
           !object.size.compare_exchange_weak(seen, status.stamp.size));
  note_store(access, status.stamp);
  return true;
}

int truncate_object(const ObjectAccess& access, std::uint64_t size) {
  const WriteUnderWay under_way(access);
  Object& object = access.object();
  const Actor& actor = access.actor;
  leave_log_if_alone(access);
  end_abandoned_through(access);
  // An append must not go to an end that the file has no more.
  OwnedGuard no_appends(object.append_lock, actor.self, actor.owners());
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  end_dead_change(access);
  if (object.through.load() != 0) return truncate_through(access, size);
  const std::uint64_t before = object.size.load();
  if (size >= before) {
    // Growing can fail (file size limit), so the store grows first. Dirty data past the store's
    // end is unharmed.
    // An empty file that stays empty, as an open with O_TRUNC makes it, owes the store nothing.
    const bool is_empty = size == 0 && object.store_size.load(std::memory_order_acquire) == 0;
    if (const int error = grow_store(access, size); error < 0) return error;
    object.extend_to(size);
    if (!is_empty) object.note_store_owed();
    if (size == 0 && was_there_before(object)) note_replacing(object);
    adopt_store(access);
    return 0;
  }
  ShapeChange change(object);
  // A crash replays the log: it has to come to the cut before it comes to what is written later.
  if (__builtin_expect(object.is_in_log(), 0)) {
    if (const int error = access.service.note_cut(access.index, size); error < 0) return error;
  }
  if (const int error = cut_store(access, size); error < 0) return error;
  note_rewritten(object, size);
  return cut_blocks(access, size, before);
}

int allocate_object(const ObjectAccess& access, int mode, std::uint64_t offset,
                    std::uint64_t length) {
  const WriteUnderWay under_way(access);
  Object& object = access.object();
  const Actor& actor = access.actor;
  const bool changes_bytes = (mode & ~FALLOC_FL_KEEP_SIZE) != 0;
  leave_log_if_alone(access);
  const bool moves_bytes = (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
  // The store must have everything before bytes are punched or moved there, and its own size for
  // the size rules.
  if (const int error = sync_object(access, false, nullptr); error < 0) return error;
  end_abandoned_through(access);
  OwnedGuard no_appends(object.append_lock, actor.self, actor.owners());
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  end_dead_change(access);
  const bool is_kernels = object.through.load() != 0;
  if (is_kernels) {
    if (const int error = finish_entering(access, 0, UINT64_MAX); error < 0) return error;
  }
  ShapeChange change(object);
  if (changes_bytes) {
    const std::uint64_t end = moves_bytes ? UINT64_MAX : offset + length;
    if (const int error = drop_blocks(access, offset, end, false, PlacementReason::kCut); error < 0)
      return error;
  }
  object.note_store_owed();
  const int error = access.backing.allocate(mode, offset, length);
  // Also of a refused one, which may have stamped the file nevertheless.
  if (is_kernels && adopt_kernel_state(access)) return error;
  StoreStatus status;
  if (error == 0 && access.backing.status(&status) == 0) {
    if (moves_bytes) {
      object.size.store(status.stamp.size);
    } else {
      object.extend_to(status.stamp.size);
    }
  }
  adopt_store(access);
  return error;
}

}  // namespace cairn
