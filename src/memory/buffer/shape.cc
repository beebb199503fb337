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
#include "memory/buffer/copy.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/shape_change.h"
#include "memory/flush/flush_object.h"

namespace cairn {
namespace {

// The page of a block in a file tier in which the file ends from now on. The rest of the page stays
// as clean or dirty as before.
int zero_tail_below(const ObjectAccess& access, const UnclaimedBlock& block, std::size_t keep) {
  const NodeMemory& memory = *access.actor.memory;
  std::byte* bounce = access.actor.bounce_blocks();
  if (bounce == nullptr) return -ENOMEM;
  const TierId tier = memory.tier_of(block.bucket());
  const std::size_t page = keep / kPageBytes * kPageBytes;
  const std::uint64_t place = memory.pool(tier).offset_of_bucket(block.bucket()) + page;
  const FileTier& device = memory.file_tier(tier);
  if (const int error = device.read_pages(place, bounce, kPageBytes); error < 0) return error;
  std::memset(bounce + (keep - page), 0, kPageBytes - (keep - page));
  return device.write_pages(place, bounce, kPageBytes);
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
    const std::size_t tail_end = (keep + kPageBytes - 1) / kPageBytes * kPageBytes;
    unclaimed.cut(pages_touched(0, keep));
    const bool has_tail = (unclaimed.descriptor().valid_pages() & tail_page) != 0;
    if (!has_tail || tail_end <= keep) return 0;
    if (actor.memory->in_memory(unclaimed.bucket())) {
      zero_shared(actor.memory->bytes(unclaimed.bucket()) + keep, tail_end - keep);
      return 0;
    }
    const int error = zero_tail_below(access, unclaimed, keep);
    if (error == 0) return 0;
    // The device of the tier may have failed; of what is clean the store has everything.
    if (unclaimed.descriptor().dirty_pages() != 0) return error;
    discard_block(actor, static_cast<UnclaimedBlock&&>(unclaimed), PlacementReason::kCut);
    return 0;
  }
}

// Size and times are as the kernel has them now, and no write of ours hides behind them.
// `*stored_size` gets how long the store's file is, if it can be asked.
void adopt_store(const ObjectAccess& access, std::uint64_t* stored_size = nullptr) {
  Object& object = access.object();
  const Actor& actor = access.actor;
  // Bytes that a write adds in between must not be taken for zeros.
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  StoreStatus status;
  if (access.file.status(&status) < 0) return;
  actor.memory->header().stamps.note(status.stamp.mtime_ns);
  // The kernel's size and times are the truth while the file is its own.
  const bool is_kernels = object.through.load() != 0;
  const std::int64_t mtime = is_kernels ? status.stamp.mtime_ns
                                        : never_back(object.mtime_ns.load(), status.stamp.mtime_ns);
  // A stamp that the store does not bear is settled there later.
  if (mtime != status.stamp.mtime_ns) object.set(kObjectTimesDirty);
  object.mtime_ns.store(mtime);
  object.ctime_ns.store(never_back(object.ctime_ns.load(), status.stamp.ctime_ns));
  object.store_mtime_ns.store(status.stamp.mtime_ns);
  object.store_ctime_ns.store(status.stamp.ctime_ns);
  object.store_size.store(status.stamp.size);
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
  if (const int error = access.file.truncate(stored); error < 0) return error;
  object.size.store(size, std::memory_order_seq_cst);
  object.store_size.store(stored, std::memory_order_seq_cst);
  if (stored < size) object.set(kObjectTimesDirty);
  return 0;
}

// The blocks follow the store. Requires: a change of shape under way, so that none comes meanwhile.
int cut_blocks(const ObjectAccess& access, std::uint64_t size, std::uint64_t before) {
  CAIRN_DCHECK(access.object().is_changing_shape());
  CAIRN_DCHECK(access.object().lock.holder() == access.actor.self);
  const std::uint64_t first_gone = (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
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
    if (error = access.file.truncate(size); error < 0) return error;
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
  return has_size ? access.file.truncate_as_called(size) : access.file.truncate(size);
}

// The kernel has the file.
int truncate_through(const ObjectAccess& access, std::uint64_t size) {
  if (const int error = finish_entering(access, 0, UINT64_MAX); error < 0) return error;
  if (const int error = access.file.truncate_as_called(size); error < 0) return error;
  access.object().size.store(size);
  adopt_store(access);
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
    if (access.file.is_writable()) {
      FlushRequest request;
      request.object = access.index;
      request.fd = access.file.fd();
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
  const bool was_cut = access.file.status(&status) == 0 &&
                       status.stamp.size < object.store_size.load(std::memory_order_acquire);
  const std::uint64_t size = was_cut ? std::min(status.stamp.size, before) : before;
  object.size.store(size, std::memory_order_seq_cst);
  (void)cut_blocks(access, size, UINT64_MAX);
  object.shape_sequence.fetch_add(1, std::memory_order_seq_cst);
}

void wait_for_shape(const ObjectAccess& access) {
  OwnedGuard guard(access.object().lock, access.actor.self, access.actor.owners());
  end_dead_change(access);
}

bool adopt_kernel_state(const ObjectAccess& access) {
  Object& object = access.object();
  std::uint64_t seen = object.size.load();
  StoreStatus status;
  do {
    if (access.file.status(&status) < 0) return false;
    // A writer beside us makes the file longer first and publishes the size afterwards. So a size
    // that changed under this look makes it look again.
  } while (seen != status.stamp.size &&
           !object.size.compare_exchange_weak(seen, status.stamp.size));
  adopt_store(access);
  return true;
}

int truncate_object(const ObjectAccess& access, std::uint64_t size) {
  Object& object = access.object();
  const Actor& actor = access.actor;
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
    if (const int error = grow_store(access, size); error < 0) return error;
    object.extend_to(size);
    adopt_store(access);
    return 0;
  }
  ShapeChange change(object);
  if (const int error = cut_store(access, size); error < 0) return error;
  return cut_blocks(access, size, before);
}

int allocate_object(const ObjectAccess& access, int mode, std::uint64_t offset,
                    std::uint64_t length) {
  Object& object = access.object();
  const Actor& actor = access.actor;
  const bool changes_bytes = (mode & ~FALLOC_FL_KEEP_SIZE) != 0;
  const bool moves_bytes = (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
  // The store must have everything before bytes are punched or moved there, and its own size for
  // the size rules.
  if (const int error = sync_object(access, false, nullptr); error < 0) return error;
  end_abandoned_through(access);
  OwnedGuard no_appends(object.append_lock, actor.self, actor.owners());
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  end_dead_change(access);
  ShapeChange change(object);
  if (changes_bytes) {
    const std::uint64_t end = moves_bytes ? UINT64_MAX : offset + length;
    if (const int error = drop_blocks(access, offset, end, false, PlacementReason::kCut); error < 0)
      return error;
  }
  const int error = sys::fallocate(access.file.fd(), mode, static_cast<off_t>(offset),
                                   static_cast<off_t>(length));
  if (error < 0) {
    // A refused one may have stamped the file nevertheless.
    adopt_store(access);
    return error;
  }
  StoreStatus status;
  if (access.file.status(&status) == 0) {
    if (moves_bytes || object.through.load() != 0) {
      object.size.store(status.stamp.size);
    } else {
      object.extend_to(status.stamp.size);
    }
  }
  adopt_store(access);
  return 0;
}

}  // namespace cairn
