// SPDX-License-Identifier: Apache-2.0
// What the store says of a file beside its bytes: how long it is, and when it was written.
#include <errno.h>

#include "base/atomic_max.h"
#include "base/check.h"
#include "base/crash_point.h"
#include "memory/flush/flush_object.h"
#include "memory/flush/unfinished_time.h"

namespace cairn {
namespace {

struct Growth {
  std::uint64_t known = 0;  // the size that the store had at least
  std::uint64_t end = 0;    // and is to have
};

// To set the size on a network file system waits for the data that its client has not sent yet, and
// opens of the file wait meanwhile (MooseFS: 150 to 740 ms). A byte behind the end
// makes the file as long, and goes the way of all data. Only while there is data to come: where
// there is none, it would cost the store a page. And only behind all that we know of, should the
// file system have said too small a size.
int make_longer(const Object& object, Backing& backing, const Growth& growth) {
  const bool is_dirty = object.dirty_blocks.load(std::memory_order_acquire) != 0;
  if (!object.has(kObjectRemote) || !is_dirty || growth.end <= growth.known)
    return backing.truncate(growth.end);
  constexpr char kZero = 0;
  const ssize_t put = backing.write(growth.end - 1, &kZero, 1);
  if (put == 0) return -EIO;
  return put < 0 ? static_cast<int>(put) : 0;
}

}  // namespace

int extend_store(Actor& actor, ObjectIndex index, Backing& backing, std::uint64_t end) {
  std::atomic<std::uint64_t>& store_size = actor.object(index).store_size;
  OwnedGuard guard(actor.memory->extend_lock(index), actor.self, actor.owners());
  StoreStatus status;
  if (const int error = backing.status(&status); error < 0) return error;
  if (status.stamp.size < end) {
    const Growth growth{store_size.load(std::memory_order_acquire), end};
    if (const int error = make_longer(actor.object(index), backing, growth); error < 0)
      return error;
    status.stamp.size = end;
  }
  CAIRN_CRASH_POINT("store.extended");
  raise_to(store_size, status.stamp.size);
  return 0;
}

namespace {

// In through mode the kernel's times are the truth, but for the one that a settling left there for
// data that was on its way.
int settle_through(Object& object, Backing& backing) {
  if (!object.has(kObjectTimesDirty)) return 0;
  StoreStatus status;
  if (const int error = backing.status(&status); error < 0) return error;
  object.clear(kObjectTimesDirty);
  const std::int64_t mtime = object.mtime_ns.load(std::memory_order_acquire);
  return status.stamp.mtime_ns == unfinished_time(mtime) ? backing.set_mtime(mtime) : 0;
}

// Brings the store's time to what it has to be and `*mtime` to what the application's then is.
int settle_time(Object& object, Backing& backing, std::int64_t* mtime, bool is_whole) {
  StoreStatus status;
  if (const int error = backing.status(&status); error < 0) return error;
  const std::int64_t stored = status.stamp.mtime_ns;
  if (is_whole ? stored == *mtime : is_clearly_before(stored, *mtime)) return 0;
  const int error = backing.set_mtime(is_whole ? *mtime : unfinished_time(*mtime));
  if (error != -EPERM && error != -EACCES) return error;
  // Another user's file may be written but not stamped: then the kernel's time of our last write is
  // the truth.
  if (!is_whole) return 0;
  *mtime = stored;
  object.mtime_ns.store(stored);
  return 0;
}

}  // namespace

int settle_store(Actor& actor, ObjectIndex index, Backing& backing) {
  Object& object = actor.object(index);
  OwnedGuard guard(object.lock, actor.self, actor.owners());
  if (object.through.load() != 0) return settle_through(object, backing);
  object.mark(kMarkBeingSettled, true);
  CAIRN_CRASH_POINT("settle.begun");
  object.clear(kObjectTimesDirty);
  // Each write of a guarded file is in the store already. To make it longer here would undo what
  // open(O_RDONLY | O_TRUNC) has just cut there, and cost it its set-id bits.
  const bool may_be_short = !object.has(kObjectGuarded);
  int result = may_be_short ? extend_store(actor, index, backing, object.size.load()) : 0;
  std::int64_t mtime = object.mtime_ns.load(std::memory_order_acquire);
  CAIRN_CRASH_POINT("settle.sized");
  // Looked at after the time: what was written before that time is stored if nothing is dirty now.
  const bool is_whole = object.dirty_blocks.load(std::memory_order_seq_cst) == 0;
  if (const int error = settle_time(object, backing, &mtime, is_whole); result == 0) result = error;
  CAIRN_CRASH_POINT("settle.stamped");
  StoreStatus status;
  if (const int error = backing.status(&status); error == 0) {
    object.store_mtime_ns.store(status.stamp.mtime_ns);
    object.store_ctime_ns.store(status.stamp.ctime_ns);
    // Only ever raised here: a write that goes on beside us may have made the file longer since we
    // looked, and bytes past store_size are taken for zeros.
    raise_to(object.store_size, status.stamp.size);
  } else if (result == 0) {
    result = error;
  }
  // A write may have stamped the object between our two looks without seeing that the flag is down.
  if (result < 0 || !is_whole || object.mtime_ns.load() != mtime) object.set(kObjectTimesDirty);
  object.mark(kMarkBeingSettled, false);
  CAIRN_CRASH_POINT("settle.done");
  return result;
}

void record_store_error(Object& object, int error_number) {
  CAIRN_DCHECK(error_number > 0 && error_number <= UINT8_MAX);
  object.error_number.store(static_cast<std::uint8_t>(error_number), std::memory_order_release);
  object.error_sequence.fetch_add(1, std::memory_order_acq_rel);
  object.set(kObjectFailing);
}

}  // namespace cairn
