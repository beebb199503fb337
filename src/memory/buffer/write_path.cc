// SPDX-License-Identifier: Apache-2.0
// Writing: into the block's bucket if it has or gets one, else through to the backing store.
#include <errno.h>

#include <algorithm>

#include "base/atomic_max.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/cycle_clock.h"
#include "base/system_call.h"
#include "memory/buffer/block_access.h"
#include "memory/buffer/file_tier_io.h"
#include "memory/buffer/kernel_use.h"
#include "memory/buffer/object_io.h"
#include "memory/buffer/object_lifecycle.h"
#include "memory/buffer/write_part.h"
#include "memory/buffer/write_under_way.h"
#include "memory/tiers/shared_copy.h"

namespace cairn {
namespace {

// Writes past the end of the backing file exclude those who set its size
// (ExtendLocks).
ssize_t write_to_store(const ObjectAccess& access, std::uint64_t offset, const void* bytes,
                       std::size_t length) {
  std::atomic<std::uint64_t>& stored = access.object().store_size;
  if (offset + length <= stored.load(std::memory_order_acquire))
    return access.backing.write(offset, bytes, length);
  const Actor& actor = access.actor;
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  const ssize_t put = access.backing.write(offset, bytes, length);
  if (put > 0) raise_to(stored, offset + static_cast<std::uint64_t>(put));
  return put;
}

ssize_t append_to_store(const ObjectAccess& access, const void* bytes, std::size_t length,
                        std::uint64_t* offset) {
  const Actor& actor = access.actor;
  OwnedGuard guard(actor.memory->extend_lock(access.index), actor.self, actor.owners());
  const ssize_t put = access.backing.append(bytes, length, offset);
  if (put > 0) raise_to(access.object().store_size, *offset + static_cast<std::uint64_t>(put));
  return put;
}

}  // namespace

ssize_t store_part(const ObjectAccess& access, const WritePart& part) {
  Object& object = access.object();
  // the kernel stamps the write itself; the application's time is settled later
  object.set(kObjectTimesDirty);
  const ssize_t put = write_to_store(access, part.offset(), part.in, part.length());
  if (put <= 0) return put;
  object.note_store_owed();
  CAIRN_DCHECK(static_cast<std::size_t>(put) <= part.length());
  const std::uint64_t end = part.offset() + static_cast<std::uint64_t>(put);
  object.extend_to(end);
  access.actor.count(Counter::kWriteThroughBytes, static_cast<std::uint64_t>(put));
  return put;
}

namespace {

// Copies the part into a locked block of the RAM tier and makes it dirty. -EFAULT when a byte of it
// could not be copied: then nothing has become valid.
int put_into_block(const ObjectAccess& access, LockedBlock& block, const WritePart& part) {
  CAIRN_DCHECK(part.begin < part.end && part.end <= block.descriptor().bucket_bytes());
  CAIRN_DCHECK(block.descriptor().holds(access.index, part.number));
  std::byte* const bytes = access.actor.memory->bytes(block.bucket());
  WritableBlock writable(block, pages_touched(part.begin, part.end));
  const std::size_t missing = copy_to_shared(bytes + part.begin, part.in, part.length());
  if (__builtin_expect(missing != 0, 0)) return -EFAULT;
  writable.commit();
  // Under the lock, so that a flusher never sees dirty bytes past the size and takes them for a
  // truncation's.
  access.object().extend_to(part.file_end());
  return 0;
}

// The same as far as the application's memory goes. Requires: every page that the part touches is
// valid.
ssize_t put_readable(const ObjectAccess& access, LockedBlock& block, WritePart part) {
  while (put_into_block(access, block, part) < 0) {
    const std::size_t there = readable_bytes(part.in, part.length());
    if (there == 0 || there == part.length()) return -EFAULT;
    part.end = part.begin + there;
  }
  return static_cast<ssize_t>(part.length());
}

// The piece of the block that cannot be resident goes to the store under the block's lock, the rest
// into the bucket.
[[gnu::noinline]] ssize_t write_beside(const ObjectAccess& access, LockedBlock& block,
                                       const WritePart& part) {
  const std::uint16_t valid = block.descriptor().valid_pages();
  for (std::size_t at = part.begin; at < part.end;) {
    const std::size_t next = std::min(part.end, (at / kPageBytes + 1) * kPageBytes);
    const WritePart page{part.number, at, next, part.in + (at - part.begin)};
    const bool is_valid = (valid & pages_touched(at, next)) != 0;
    const ssize_t put = is_valid ? put_readable(access, block, page) : store_part(access, page);
    if (put < static_cast<ssize_t>(page.length())) {
      const std::size_t done =
          at - part.begin + static_cast<std::size_t>(std::max<ssize_t>(put, 0));
      return done > 0 ? static_cast<ssize_t>(done) : put;
    }
    at = next;
  }
  return static_cast<ssize_t>(part.length());
}

// The part has gone to the store without the block's lock, and the block is resident now: what is
// valid of it takes the bytes. Into the other pages of the store an earlier flush of the block may
// have put what was there before, so they are stored once more.
ssize_t follow_store(const ObjectAccess& access, LockedBlock& block, const WritePart& part) {
  if (access.actor.memory->in_memory(block.bucket())) return write_beside(access, block, part);
  const std::uint16_t valid = block.descriptor().valid_pages();
  if ((valid & pages_touched(part.begin, part.end)) == 0) return store_part(access, part);
  const int error = put_into_file_tier(access, block, part);
  return error < 0 ? error : static_cast<ssize_t>(part.length());
}

// The block of a write that has gone to the store, not claimed; empty when it is not resident.
LockedBlock lock_to_follow(const ObjectAccess& access, BlockNumber number) {
  for (;;) {
    LockedBlock block = lock_resident(access.actor, access.index, number);
    if (!block || access.actor.memory->in_memory(block.bucket()) || !block.is_claimed())
      return block;
    const BlockDescriptor& descriptor = block.descriptor();
    block.unlock();
    descriptor.wait_for_claimant(access.actor.owners());
  }
}

// No bucket: write to the store, then into the block if it has become resident meanwhile, because
// it may have been filled from the store before our bytes were there. A block that has come and
// gone since we looked may have been written over our bytes with what it was filled with: then they
// are written once more.
[[gnu::noinline]] ssize_t write_around(const ObjectAccess& access, const WritePart& part) {
  if (access.object().through.load(std::memory_order_seq_cst) != 0) {
    if (const int error = finish_entering(access, part.offset(), part.length()); error < 0)
      return error;
  }
  const BlockDirectory& directory = access.actor.memory->directory();
  for (;;) {
    const std::uint16_t arrivals = directory.arrivals(access.index, part.number);
    const bool was_resident = directory.find(access.index, part.number) != BucketIndex::kNone;
    const ssize_t put = store_part(access, part);
    if (put <= 0) return put;
    LockedBlock block = lock_to_follow(access, part.number);
    if (!block) {
      if (!was_resident && directory.arrivals(access.index, part.number) == arrivals) return put;
      continue;
    }
    WritePart stored = part;
    stored.end = part.begin + static_cast<std::size_t>(put);
    // A service that stored the bytes once more could take set-id bits away that this write has
    // left. This process has the right to, and has to: the clean block may have been stored over
    // them. Under the lock, so that readers who bring the block in again cannot keep it here.
    if (access.object().has(kObjectGuarded) && block.descriptor().dirty_pages() == 0) {
      if (UnclaimedBlock unclaimed(block); unclaimed) {
        const ssize_t again = store_part(access, stored);
        discard_block(access.actor, static_cast<UnclaimedBlock&&>(unclaimed),
                      PlacementReason::kThrough);
        return again;
      }
    }
    const ssize_t followed = follow_store(access, block, stored);
    if (followed != -EAGAIN) return followed;
  }
}

// The part goes into a locked block of a file tier. `length` as in try_part(); -EAGAIN when the
// block is to be looked for again.
[[gnu::noinline]] ssize_t write_below(const ObjectAccess& access, LockedBlock& block,
                                      const WritePart& part, std::size_t length) {
  const BlockDescriptor& descriptor = block.descriptor();
  if (descriptor.valid_pages() == 0 && part.length() == kBlockBytes) {
    const std::size_t put = write_file_tier_run(access, static_cast<LockedBlock&&>(block),
                                                part.number, part.in, length / kBlockBytes);
    return put > 0 ? static_cast<ssize_t>(put) : write_around(access, part);
  }
  if (block.is_claimed()) {
    block.unlock();
    descriptor.wait_for_claimant(access.actor.owners());
    return -EAGAIN;
  }
  const bool is_fresh = descriptor.valid_pages() == 0;
  const int error = put_into_file_tier(access, block, part);
  if (error == 0) return static_cast<ssize_t>(part.length());
  if (!is_fresh) return error;
  // A device that does not take a fresh block is passed over.
  discard_unfilled(access.actor, block);
  return error == -EFAULT ? error : write_around(access, part);
}

// `length` bytes are to be written from the part's beginning on: where that is one operation of a
// device, more than the part is done. -EFAULT when the application's memory is not all there, and
// nothing was done.
ssize_t try_part(const ObjectAccess& access, const WritePart& part, std::size_t length) {
  const auto blocks_wanted = length < kBlockBytes
                                 ? BlockRequest::kOnlyAPiece
                                 : static_cast<unsigned>(std::min<std::size_t>(
                                       length / kBlockBytes + 1, Lease::kSlabsMax));
  for (;;) {
    LockedBlock block = lock_or_place(access, {.number = part.number,
                                               .end = part.end,
                                               .reason = PlacementReason::kWritten,
                                               .blocks_wanted = blocks_wanted});
    if (__builtin_expect(!block, 0)) return write_around(access, part);
    const BlockDescriptor& descriptor = block.descriptor();
    if (__builtin_expect(!access.actor.memory->in_memory(block.bucket()), 0)) {
      const ssize_t put = write_below(access, block, part, length);
      if (put == -EAGAIN) continue;
      return put;
    }
    if (__builtin_expect(part.end > descriptor.bucket_bytes(), 0))
      return write_beside(access, block, part);
    const bool is_whole = descriptor.valid_pages() == kAllPages;
    if (is_whole || fill_pages(access, block, part.number, partial_pages(part)) == 0) {
      const int error = put_into_block(access, block, part);
      if (__builtin_expect(error < 0, 0) && descriptor.valid_pages() == 0)
        discard_unfilled(access.actor, block);
      return error < 0 ? error : static_cast<ssize_t>(part.length());
    }
    // Not readable by this process (write-only file of somebody else), or a bad sector: its old
    // bytes stay in the store.
    const ssize_t put = write_beside(access, block, part);
    if (descriptor.valid_pages() == 0) discard_unfilled(access.actor, block);
    return put;
  }
}

// try_part() has said -EFAULT: as much of the part as there is of the application's memory.
[[gnu::noinline]] ssize_t write_readable(const ObjectAccess& access, WritePart part) {
  for (;;) {
    const std::size_t there = readable_bytes(part.in, part.length());
    if (there == 0) return -EFAULT;
    // All of it: then it was the bucket's memory that the kernel could not give.
    if (there == part.length()) return write_around(access, part);
    part.end = part.begin + there;
    const ssize_t put = try_part(access, part, there);
    if (put != -EFAULT) return put;
  }
}

ssize_t write_part(const ObjectAccess& access, const WritePart& part, std::size_t length) {
  const ssize_t put = try_part(access, part, length);
  return __builtin_expect(put != -EFAULT, 1) ? put : write_readable(access, part);
}

void stamp_write(const ObjectAccess& access) {
  Object& object = access.object();
  const std::int64_t now = access.actor.memory->stamp_clock().now();
  object.mtime_ns.store(never_back(object.mtime_ns.load(std::memory_order_relaxed), now),
                        std::memory_order_relaxed);
  object.ctime_ns.store(never_back(object.ctime_ns.load(std::memory_order_relaxed), now),
                        std::memory_order_relaxed);
  if (!object.has(kObjectTimesDirty)) object.set(kObjectTimesDirty);
}

// The kernel has taken a write that ends at `end`, and stamped the file: a later settling must not
// undo it.
void adopt_through(const ObjectAccess& access, std::uint64_t end, std::size_t length) {
  Object& object = access.object();
  object.extend_to(end);
  StoreStatus status;
  if (access.backing.status(&status) == 0) {
    access.actor.memory->stamp_clock().note(status.stamp.mtime_ns);
    object.mtime_ns.store(status.stamp.mtime_ns, std::memory_order_relaxed);
    object.ctime_ns.store(status.stamp.ctime_ns, std::memory_order_relaxed);
  }
  access.actor.count(Counter::kWriteThroughBytes, length);
}

// Through mode, or the service cannot take over: the kernel has the file.
[[gnu::noinline]] ssize_t write_whole_through(const ObjectAccess& access, std::uint64_t offset,
                                              const void* buffer, std::size_t length) {
  end_abandoned_through(access);
  if (const int error = finish_entering(access, offset, length); error < 0) return error;
  const ssize_t put = write_to_store(access, offset, buffer, length);
  if (put > 0)
    adopt_through(access, offset + static_cast<std::uint64_t>(put), static_cast<std::size_t>(put));
  return put;
}

// The same at the end of the file, which the kernel finds: others may be appending through it
// alone. All buffered bytes are stored before, because the file ends with them. -EAGAIN when
// through mode has ended. Requires: the append lock, so that it does not begin again meanwhile.
ssize_t append_through(const ObjectAccess& access, const void* buffer, std::size_t length,
                       std::uint64_t* offset) {
  Object& object = access.object();
  if (const int error = finish_entering(access, 0, UINT64_MAX); error < 0) return error;
  OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  if (object.through.load(std::memory_order_seq_cst) == 0) return -EAGAIN;
  const ssize_t put = append_to_store(access, buffer, length, offset);
  if (put > 0)
    adopt_through(access, *offset + static_cast<std::uint64_t>(put), static_cast<std::size_t>(put));
  return put;
}

// Whether the file was the kernel's without a break since its shape was `shape`. When through mode
// ended before the kernel had the bytes, a block may have been filled without them.
bool was_through_since(const Object& object, std::uint32_t shape) {
  const bool is_kernels = object.through.load(std::memory_order_seq_cst) != 0;
  const std::uint32_t now = object.shape_sequence.load(std::memory_order_seq_cst);
  return is_kernels && shape / Object::kThroughEnded == now / Object::kThroughEnded;
}

// Dirty data must outlive this process, so the service has a descriptor of the file before the
// first dirty byte. And what the kernel has a say in does not stay in the buffer alone.
bool is_ready_for_dirty_bytes(const Object& object) {
  constexpr std::uint32_t kLooked = kObjectHandedOver | kObjectGuarded;
  return (object.flags.load(std::memory_order_acquire) & kLooked) == kObjectHandedOver;
}

// The same, made true where that can be done.
bool may_stay_buffered(const ObjectAccess& access) {
  const Object& object = access.object();
  if (__builtin_expect(is_ready_for_dirty_bytes(object), 1)) return true;
  const bool is_protected =
      object.has(kObjectHandedOver) || access.service.hand_over(access.index, access.backing);
  return is_protected && !object.has(kObjectGuarded);
}

// The kernel has taken a write of a guarded file, and with it perhaps what made it one. Under the
// lock, because somebody may be setting that again. A file that became one while we wrote has our
// bytes in the buffer: they are stored with this process's rights, which decide what is taken away.
[[gnu::noinline]] void look_at_guard(const ObjectAccess& access) {
  Object& object = access.object();
  if (object.dirty_blocks.load() != 0) (void)sync_object(access, false, nullptr);
  const OwnedGuard guard(object.lock, access.actor.self, access.actor.owners());
  StoreStatus status;
  if (access.backing.status(&status) == 0 && !status.is_guarded()) object.clear(kObjectGuarded);
}

ssize_t write_blocks(const ObjectAccess& access, std::uint64_t offset, const std::byte* in,
                     std::size_t length, bool around) {
  std::size_t done = 0;
  while (done < length) {
    const std::uint64_t at = offset + done;
    const std::size_t begin = at & (kBlockBytes - 1);
    const std::size_t take = std::min(length - done, kBlockBytes - begin);
    const WritePart part{block_of(at), begin, begin + take, in + done};
    const ssize_t put =
        around ? write_around(access, part) : write_part(access, part, length - done);
    if (put < 0) return done > 0 ? static_cast<ssize_t>(done) : put;
    CAIRN_DCHECK(static_cast<std::size_t>(put) <= length - done);
    done += static_cast<std::size_t>(put);
    if (static_cast<std::size_t>(put) < take) break;
  }
  return static_cast<ssize_t>(done);
}

// When a write began; 0 for one that nobody times.
struct CallTime {
  std::uint64_t started;
  unsigned weight = 1;  // how many writes it stands for

  // 20 us at 3 GHz. A plain write that took longer was interrupted, as most of the others were not.
  static constexpr std::uint64_t kPlainCyclesMost = 1 << 16;

  std::uint64_t cycles() const {
    if (__builtin_expect(started == 0, 1)) return 0;
    const std::uint64_t passed = cycle_count() - started;
    return passed < kPlainCyclesMost ? weight * passed : passed;
  }
};

// Tells of a write that has done what it does.
ssize_t finish_call(const ObjectAccess& access, std::uint64_t offset, std::size_t length,
                    CallTime time, ssize_t done) {
  Actor& actor = access.actor;
  if (done > 0) actor.count(Counter::kWriteBytes, static_cast<std::uint64_t>(done));
  actor.met = AccessKind::kWrite;
  tell_access(access, offset, length, time.started, EventLevel::kWrites);
  if (__builtin_expect(access.object().handling().mode == BufferingMode::kSync, 0) && done > 0) {
    // What the device takes for one write says nothing of others.
    time = {time.started != 0 ? time.started : cycle_count()};
    done = store_if_promised(access, done);
  }
  const std::uint64_t cycles = time.cycles();
  note_wait(access, done > 0 ? static_cast<std::uint64_t>(done) : 0, cycles);
  if (cycles != 0) actor.count(Counter::kIoCycles, cycles);
  return done;
}

// The plain write: inside one block that RAM has, with all pages of which it changes a piece. It
// makes no call of the kernel, and waits only for a lock that another thread takes in the same
// moment. False when it is none, or the file's shape changed
// meanwhile: then all of it is to be written, once more if need be.
[[gnu::always_inline]] inline bool write_hit(const ObjectAccess& access, std::uint64_t offset,
                                             const std::byte* in, std::size_t length) {
  const Object& object = access.object();
  const std::size_t begin = offset & (kBlockBytes - 1);
  if (length > kBlockBytes - begin) return false;
  const std::uint32_t shape = object.shape_sequence.load(std::memory_order_acquire);
  if (Object::is_odd(shape) || !is_ready_for_dirty_bytes(object)) return false;
  const WritePart part{block_of(offset), begin, begin + length, in};
  {
    const NodeMemory& memory = *access.actor.memory;
    const BucketIndex bucket = memory.directory().find(access.index, part.number);
    // write_any() waits for the lock: it is timed, and notes that a fetch was late.
    if (bucket == BucketIndex::kNone || BlockDescriptor::is_locked(memory.block(bucket).word()))
      return false;
    LockedBlock block;
    if (!block.lock_place(access.actor.worker(), bucket, access.index, part.number)) return false;
    if (object.through.load(std::memory_order_seq_cst) != 0) return false;
    const BlockDescriptor& descriptor = block.descriptor();
    const bool is_there = memory.in_memory(bucket) && !descriptor.is_marked() &&
                          part.end <= descriptor.bucket_bytes() &&
                          (partial_pages(part) & ~descriptor.valid_pages()) == 0;
    if (!is_there || put_into_block(access, block, part) < 0) return false;
  }
  stamp_write(access);
  return object.shape_sequence.load(std::memory_order_seq_cst) == shape;
}

// Two looks at the clock cost a longer write little.
constexpr std::size_t kUntimedBytesMost = 4096;

// A write that is no plain one, to the end.
[[gnu::noinline]] ssize_t write_any(const ObjectAccess& access, std::uint64_t offset,
                                    const void* buffer, std::size_t length) {
  Object& object = access.object();
  ssize_t done = 0;
  for (;;) {
    const std::uint32_t shape = object.shape_sequence.load(std::memory_order_acquire);
    if (__builtin_expect(Object::is_odd(shape), 0)) {
      wait_for_shape(access);
      continue;
    }
    if (__builtin_expect(object.through.load(std::memory_order_acquire) != 0, 0)) {
      done = write_whole_through(access, offset, buffer, length);
      if (was_through_since(object, shape)) break;
      continue;
    }
    const bool stays = may_stay_buffered(access);
    done = write_blocks(access, offset, static_cast<const std::byte*>(buffer), length, !stays);
    if (done > 0) stamp_write(access);
    const std::uint32_t now = object.shape_sequence.load(std::memory_order_seq_cst);
    if (__builtin_expect(stays && now == shape, 1)) break;
    if (done > 0 && object.has(kObjectGuarded)) look_at_guard(access);
    // A truncation that came in between may have taken some of our blocks: after it, write again.
    if (((shape ^ now) & Object::kShapeMask) == 0) break;
  }
  return done;
}

}  // namespace

[[gnu::noinline]] ssize_t store_if_promised(const ObjectAccess& access, ssize_t written) {
  if (access.object().handling().mode != BufferingMode::kSync) return written;
  const int error = sync_object(access, true, nullptr);
  return error < 0 ? error : written;
}

ssize_t write_object(const ObjectAccess& access, std::uint64_t offset, const void* buffer,
                     std::size_t length) {
  Actor& actor = access.actor;
  const bool is_sampled = actor.is_sampled_write();
  actor.count(Counter::kWrites, 1);
  if (length == 0) return 0;
  const WriteUnderWay under_way(access);
  const bool is_long = length > kUntimedBytesMost;
  CallTime time{is_long || is_sampled ? cycle_count() : 0};
  if (__builtin_expect(write_hit(access, offset, static_cast<const std::byte*>(buffer), length),
                       1)) {
    if (!is_long) time.weight = Actor::kSampleWritesEvery;
    return finish_call(access, offset, length, time, static_cast<ssize_t>(length));
  }
  if (time.started == 0) time.started = cycle_count();
  return finish_call(access, offset, length, time, write_any(access, offset, buffer, length));
}

ssize_t append_object(const ObjectAccess& access, const void* buffer, std::size_t length,
                      std::uint64_t* offset) {
  Object& object = access.object();
  OwnedGuard guard(object.append_lock, access.actor.self, access.actor.owners());
  if (__builtin_expect(object.through.load(std::memory_order_seq_cst) != 0 && length != 0, 0)) {
    const std::uint64_t started = cycle_count();
    end_abandoned_through(access);
    const ssize_t put = append_through(access, buffer, length, offset);
    if (put != -EAGAIN) {
      access.actor.count(Counter::kWrites, 1);
      return finish_call(access, *offset, length, {started}, put);
    }
  }
  *offset = object.size.load(std::memory_order_acquire);
  return write_object(access, *offset, buffer, length);
}

}  // namespace cairn
