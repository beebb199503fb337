// SPDX-License-Identifier: Apache-2.0
// Operations that change which bytes a file has: truncation, allocation, hole punching.
#include <errno.h>
#include <fcntl.h>

#include <algorithm>

#include "base/clock.h"
#include "base/system_call.h"
#include "buffer/block_access.h"
#include "buffer/copy.h"
#include "buffer/object_lifecycle.h"
#include "flush/dirty_accounting.h"
#include "flush/flush_object.h"

namespace cairn {
namespace {

// Odd while a change of shape is under way: writers that overlap it write again.
class ShapeChange {
 public:
  explicit ShapeChange(Object& object) : object_(object) {
    // A process may have died in mid-change and left it odd.
    if ((object_.shape_sequence.load() & 1) == 0) object_.shape_sequence.fetch_add(1);
  }
  ~ShapeChange() { object_.shape_sequence.fetch_add(1); }
  ShapeChange(const ShapeChange&) = delete;
  ShapeChange& operator=(const ShapeChange&) = delete;

 private:
  Object& object_;
};

// Cuts the block in which the new end lies: later pages go, and the rest of the last page reads as
// zeros.
int cut_block(const ObjectAccess& access, std::uint64_t size) {
  Actor& actor = access.actor;
  const std::size_t keep = size & (kBlockBytes - 1);
  if (keep == 0 || size >= kBlockableBytes) return 0;
  for (;;) {
    LockedBlock block = lock_resident(actor, access.index, block_of(size));
    if (!block) return 0;
    BlockDescriptor& descriptor = block.descriptor();
    if (descriptor.is_flushing(actor.owners())) {
      block.unlock();
      descriptor.wait_for_flusher(actor.owners());
      continue;
    }
    const std::uint16_t kept = pages_touched(0, keep);
    const std::uint16_t valid = descriptor.valid_pages.load();
    const std::uint16_t dirty = descriptor.dirty_pages.load();
    const std::uint16_t tail_page = pages_touched(keep - 1, keep);
    const std::size_t tail_end = (keep + kPageBytes - 1) / kPageBytes * kPageBytes;
    descriptor.valid_pages.store(static_cast<std::uint16_t>(valid & kept));
    descriptor.dirty_pages.store(static_cast<std::uint16_t>(dirty & kept));
    if (dirty != 0 && (dirty & kept) == 0) {
      note_block_clean(actor, block.bucket(), access.index);
      if (descriptor.state.load() == BlockState::kFlushing) descriptor.enter(BlockState::kDirty);
      descriptor.enter(BlockState::kClean);
    }
    block.set_changed();
    const bool has_tail = (valid & tail_page) != 0 && tail_end > keep;
    if (has_tail && !block.in_memory()) {
      // In a file tier the page's tail cannot be zeroed in place: store the block and read it again
      // when it is wanted. The pages past the end had to go first: a flush leaves those to us.
      if ((dirty & kept) == 0) {
        discard_block(actor, block, PlacementReason::kCut);
        return 0;
      }
      block.unlock();
      if (const int error = drop_blocks(access, size - keep, size, false, PlacementReason::kCut);
          error < 0) {
        return error;
      }
      continue;
    }
    if (has_tail) zero_shared(block.bytes() + keep, tail_end - keep);
    return 0;
  }
}

// Size and times are as the kernel has them now, and no write of ours hides behind them.
void adopt_store(const ObjectAccess& access) {
  Object& object = access.object();
  StoreStatus status;
  if (access.file.status(&status) < 0) return;
  access.actor.memory->header().stamps.note(status.stamp.mtime_ns);
  // What the kernel has is the truth while the file is its own.
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
      BlockDescriptor& descriptor = block.descriptor();
      if (descriptor.is_flushing(actor.owners())) {
        block.unlock();
        descriptor.wait_for_flusher(actor.owners());
        left = true;
      } else if (discard_dirty || descriptor.dirty_pages.load() == 0) {
        discard_block(actor, block, reason);
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

int truncate_object(const ObjectAccess& access, std::uint64_t size) {
  Object& object = access.object();
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  const std::uint64_t before = object.size.load();
  const bool buffered = object.through.load() == 0;
  if (size >= before || !buffered) {
    // Growing can fail (file size limit), so the store is asked first. Dirty data past the store's
    // end is unharmed.
    if (const int error = access.file.truncate(size); error < 0) return error;
    if (size > before || !buffered) object.size.store(size);
    adopt_store(access);
    return 0;
  }
  ShapeChange change(object);
  object.size.store(size, std::memory_order_seq_cst);
  const std::uint64_t first_gone = (size + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  int error =
      drop_blocks(access, first_gone, std::max(first_gone, before), true, PlacementReason::kCut);
  if (error == 0) error = cut_block(access, size);
  if (error == 0) error = access.file.truncate(size);
  adopt_store(access);
  return error;
}

int allocate_object(const ObjectAccess& access, int mode, std::uint64_t offset,
                    std::uint64_t length) {
  Object& object = access.object();
  const bool changes_bytes = (mode & ~FALLOC_FL_KEEP_SIZE) != 0;
  const bool moves_bytes = (mode & (FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE)) != 0;
  // The store must have everything before bytes are punched or moved there, and its own size for
  // the size rules.
  if (const int error = sync_object(access, false, nullptr); error < 0) return error;
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  ShapeChange change(object);
  if (changes_bytes && object.through.load() == 0) {
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
